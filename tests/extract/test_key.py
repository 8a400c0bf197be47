"""Which field identifies the rows, and what becomes of rows without it."""

from collections.abc import Callable

import numpy as np

from pipelines.core.completeness import ListMemory, Method
from pipelines.extract.pages import Ask, Page, Proof
from tests.extract.lists import drive

Record = tuple[int | None, ...]
LIMIT = 10


def read(
    fields: tuple[str, ...],
    records: list[Record],
    key: str | None = None,
    memory: ListMemory | None = None,
    stop: int = 10**9,
) -> tuple[Proof, int]:
    """Read a list that does not change; return the proof and the number of requests."""
    requests = 0

    def answer(ask: Ask, number: int) -> Page:
        nonlocal requests
        requests, offset = number, ask.request.offset
        shown = records[offset : offset + LIMIT]
        keys = [[0 if value is None else value + 1 for value in record] for record in shown]
        rows = [
            [hash(record) % 2**64, *each[: len(fields)]]
            for record, each in zip(shown, keys, strict=True)
        ]
        values = np.array(rows, np.uint64).reshape(len(rows), 1 + len(fields))
        return Page(number, ask.request, fields, values, LIMIT, offset + LIMIT < len(records))

    return drive(answer, LIMIT, memory, key, stop), requests


def records(size: int, *columns: Callable[[int], int | None]) -> list[Record]:
    return [tuple(column(at) for column in columns) for at in range(size)]


def test_configured_key_is_preferred() -> None:
    proof, _requests = read(("code", "id"), records(45, int, int), key="code")
    assert proof.memory == ListMemory("code", key_decided=True, length=45)


def test_key_that_repeats_far_apart_is_replaced_without_reading_the_list_again() -> None:
    proof, requests = read(("id", "billingId"), records(45, lambda at: at % 20, int))
    assert (proof.complete, proof.rows, proof.memory.key) == (True, 45, "billingId")
    assert requests <= 12


def test_field_that_is_unique_by_chance_on_the_first_page_is_no_key() -> None:
    proof, _requests = read(("amount",), records(45, lambda at: at % 40, int))
    assert (proof.complete, proof.rows, proof.memory.key) == (True, 45, None)
    assert proof.memory.key_decided


def test_key_may_be_null_in_one_row_of_a_hundred() -> None:
    for null_rows, key in ((2, "id"), (3, None)):
        rows = records(200, lambda at: None if 0 < at <= null_rows else at, int)  # noqa: B023
        proof, _requests = read(("id",), rows)
        assert proof.memory.key == key
        quarantined = sum(end - first for each in proof.conflicting.values() for first, end in each)
        assert quarantined == (null_rows if key else 0)
        assert proof.rows == 200 - quarantined


def test_pinned_key_is_used_whatever_the_rows_say() -> None:
    memory = ListMemory("id", key_decided=True, length=30)
    proof, _requests = read(("id",), records(30, lambda at: at % 3), memory=memory)
    assert (proof.memory.key, proof.rows) == ("id", 3)


def test_empty_list_is_one_page() -> None:
    proof, requests = read(("id",), [])
    assert (proof.complete, proof.method, proof.rows, requests) == (True, Method.ONE_PAGE, 0, 1)
    assert not proof.memory.key_decided


def test_empty_list_that_had_rows_is_asked_for_again() -> None:
    memory = ListMemory("id", key_decided=True, length=30)
    proof, requests = read(("id",), [], memory=memory)
    assert (proof.complete, proof.rows) == (True, 0)
    assert requests > 1


def test_stop_ends_reading_with_what_was_read() -> None:
    proof, _requests = read(("id",), records(45, int), stop=1)
    assert not proof.complete
    assert (proof.rows, proof.used) == (LIMIT, {1: ((0, LIMIT),)})
    assert proof.reason.startswith("time is up")
    assert proof.memory == ListMemory()
