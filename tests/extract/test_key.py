"""Which field identifies the rows, and what becomes of rows without it."""

from collections.abc import Callable
from itertools import count

from pipelines.core.completeness import ListMemory, Method, ReadBudget
from pipelines.extract.pages import Page, Proof, RowRef, Stop
from pipelines.extract.read_list import read_list

Record = tuple[str | None, ...]
LIMIT = 10


def read(
    fields: tuple[str, ...],
    records: list[Record],
    key: str | None = None,
    memory: ListMemory | None = None,
) -> tuple[Proof, int]:
    """Read a list that does not change; return the proof and the number of requests."""
    steps = read_list(key, memory or ListMemory(), ReadBudget(page_size=LIMIT))
    ask = next(steps)
    try:
        for number in count(1):
            offset = ask.request.offset
            rows = [
                RowRef((hash(("row", *record)) % 2**64).to_bytes(8), record)
                for record in records[offset : offset + LIMIT]
            ]
            more = offset + LIMIT < len(records)
            page = Page(number, ask.request, rows, fields, LIMIT, more, None, number, number)
            ask = steps.send(page)
    except StopIteration as end:
        proof: Proof = end.value
        return proof, number
    raise AssertionError


def records(size: int, *columns: Callable[[int], object]) -> list[Record]:
    return [
        tuple(None if (value := column(at)) is None else str(value) for column in columns)
        for at in range(size)
    ]


def test_configured_key_is_preferred() -> None:
    proof, _requests = read(("code", "id"), records(45, int, int), key="code")
    assert proof.memory == ListMemory("code", key_decided=True, length=45)


def test_key_that_repeats_far_apart_is_replaced_without_reading_the_list_again() -> None:
    proof, requests = read(("id", "billingId"), records(45, lambda at: at % 20, int))
    assert (proof.complete, proof.rows, proof.memory.key) == (True, 45, "billingId")
    assert requests <= 12


def test_field_that_is_unique_by_chance_on_the_first_page_is_no_key() -> None:
    amounts = records(45, lambda at: at if at < 40 else at - 40)
    proof, _requests = read(("amount",), [(*row, str(at)) for at, row in enumerate(amounts)])
    assert (proof.complete, proof.rows, proof.memory.key) == (True, 45, None)
    assert proof.memory.key_decided


def test_key_may_be_null_in_one_row_of_a_hundred() -> None:
    for null_rows, key in ((2, "id"), (3, None)):
        proof, _requests = read(
            ("id",),
            [(*r, str(n)) for n, r in enumerate(records(200, lambda at: at or None))][:1]
            + [(str(n) if n >= null_rows else None, str(n)) for n in range(1, 200)],
        )
        assert proof.memory.key == key
        quarantined = sum(end - first for each in proof.conflicting.values() for first, end in each)
        assert quarantined == (null_rows if key else 0)
        assert proof.rows == 200 - quarantined


def test_pinned_key_is_used_whatever_the_rows_say() -> None:
    memory = ListMemory("id", key_decided=True, length=30)
    proof, _requests = read(("id",), records(30, lambda at: at % 3), memory=memory)
    assert proof.memory.key == "id"
    assert proof.rows == 3


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
    steps = read_list(None, ListMemory(), ReadBudget(page_size=LIMIT))
    ask = next(steps)
    rows = [RowRef(bytes([at] * 8), (str(at),)) for at in range(LIMIT)]
    steps.send(
        Page(
            1, ask.request, rows, ("id",), LIMIT, has_more=True, next_offset=10, sent=1, received=2
        )
    )
    try:
        steps.send(Stop("time is up"))
    except StopIteration as end:
        proof: Proof = end.value
    assert not proof.complete
    assert (proof.rows, proof.used) == (10, {1: ((0, 10),)})
    assert proof.reason.startswith("time is up")
    assert proof.memory == ListMemory()
