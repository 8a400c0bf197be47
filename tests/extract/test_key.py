"""Which field identifies the rows, and what becomes of rows without it."""

from collections.abc import Callable, Container

import numpy as np
import pytest
from msgspec.structs import replace

from pipelines.archive.records import parse_page
from pipelines.core.proof import ListTraits, Method, Proof
from pipelines.extract.key import PageReader
from pipelines.extract.pages import NextRequests, Page
from pipelines.load.records import read_key
from tests.archive.scans import HEADER, exchange, page
from tests.extract.lists import drive

Record = tuple[int | None, ...]
LIMIT = 10


def read(
    fields: tuple[str, ...],
    records: list[Record],
    key: str | None = None,
    traits: ListTraits | None = None,
    stop: int = 10**9,
) -> tuple[Proof, int]:
    """Read a list that does not change; return the proof and the number of requests."""
    requests = 0

    def answer(ask: NextRequests, number: int) -> Page:
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

    return drive(answer, traits, key, stop), requests


def records(size: int, *columns: Callable[[int], int | None]) -> list[Record]:
    return [tuple(column(at) for column in columns) for at in range(size)]


@pytest.mark.parametrize(
    ("fields", "rows", "key"),
    [
        pytest.param(
            ("id", "billingId"), records(45, lambda at: at % 20, int), "billingId", id="far"
        ),
        pytest.param(("amount",), records(45, lambda at: at % 40, int), None, id="by chance"),
    ],
)
def test_key_is_decided_over_the_whole_list(
    fields: tuple[str, ...], rows: list[Record], key: str | None
) -> None:
    """A field that repeats far apart is replaced without reading the list again."""
    proof, requests = read(fields, rows)
    assert (proof.complete, proof.rows) == (True, 45)
    assert proof.traits == ListTraits(key, key_decided=True, length=45)
    assert requests <= 12


def test_of_two_fields_the_one_without_conflicts_is_the_key() -> None:
    for fields in (("id", "billingId"), ("billingId", "id")):
        rows = records(200, lambda at: at - (at == 25), int)
        proof, _requests = read(fields, rows)
        assert proof.traits.key == fields[1]


def test_key_may_be_null_in_one_row_of_a_hundred() -> None:
    for null_rows, key in ((2, "id"), (3, None)):
        rows = records(200, lambda at: None if 0 < at <= null_rows else at, int)  # noqa: B023
        proof, _requests = read(("id",), rows)
        assert proof.traits.key == key
        quarantined = sum(end - first for each in proof.conflicting.values() for first, end in each)
        assert quarantined == (null_rows if key else 0)
        assert proof.rows == 200 - quarantined


@pytest.mark.parametrize(
    ("copies", "apart", "key"),
    [
        ({5, 25, 47}, 1, "id"),
        ({5, 25, 47, 68}, 1, None),
        (range(182, 200), 100, "id"),
        (range(181, 200), 100, None),
    ],
)
def test_key_may_have_other_content_in_2_of_100_on_a_page_and_10_on_several(
    copies: Container[int], apart: int, key: str | None
) -> None:
    rows = records(200, lambda at: at - apart if at in copies else at, int)
    proof, _requests = read(("id",), rows)
    assert proof.traits.key == key


@pytest.mark.parametrize("traits", [None, ListTraits(key_decided=True), ListTraits("code", True)])
def test_a_configured_key_stays_whatever_the_records_hold(traits: ListTraits | None) -> None:
    odd = {20, 50, 80}  # of 103 records, 3 lack the key, 4 have that of another one
    rows = records(103, lambda at: None if at in odd else max(at, 5), int)
    proof, _requests = read(("id",), rows, key="id", traits=traits)
    assert (proof.traits.key, proof.traits.key_decided) == ("id", True)
    set_aside = sum(end - first for each in proof.conflicting.values() for first, end in each)
    assert (proof.rows, set_aside) == (95, 8)
    header = replace(HEADER, traits=traits or ListTraits(), configured_key="id")
    sent = page(b'{"code": 1, "id": 2}')
    assert PageReader(header).read(1, exchange(sent), parse_page(sent)).fields == ("id",)


def test_a_key_of_several_fields_identifies_by_all_of_them() -> None:
    reader = PageReader(replace(HEADER, configured_key='["source","id"]'))
    raws = [
        b'{"source":"a","id":"1"}',
        b'{"source":"b","id":"1","n":1}',
        b'{"id" : "1","source":"a","n":2}',
        b'{"source":"1","id":"a"}',
        b'{"id":"1"}',
        b'{"source":"a","id":null}',
        b"null",
    ]
    sent = page(*raws)
    read_page = reader.read(1, exchange(sent), parse_page(sent))
    assert read_page.fields == ('["source","id"]',)
    numbers = read_page.values[:, 1].tolist()
    assert numbers[0] == numbers[2]
    assert numbers[4:] == [0, 0, 0]
    assert len({*numbers[:4]}) == 3
    alone = page(raws[0])  # decoded without the odd record
    assert reader.read(2, exchange(alone), parse_page(alone)).values[0, 1] == numbers[0]


def test_pinned_key_is_used_whatever_the_rows_say() -> None:
    traits = ListTraits("id", key_decided=True, length=30)
    proof, _requests = read(("id",), records(30, lambda at: at % 3), traits=traits)
    assert (proof.traits.key, proof.rows) == ("id", 3)


def test_empty_list_is_one_page_unless_it_had_rows() -> None:
    proof, requests = read(("id",), [])
    assert (proof.complete, proof.method, proof.rows, requests) == (True, Method.ONE_PAGE, 0, 1)
    assert not proof.traits.key_decided
    proof, requests = read(("id",), [], traits=ListTraits("id", key_decided=True, length=30))
    assert (proof.complete, proof.rows) == (True, 0)
    assert requests > 1


def test_stop_ends_reading_with_what_was_read() -> None:
    proof, _requests = read(("id",), records(45, int), stop=1)
    assert not proof.complete
    assert (proof.rows, proof.used) == (LIMIT, {1: ((0, LIMIT),)})
    assert proof.reason.startswith("time is up")
    assert proof.traits == ListTraits("id")  # the rows' key now; the next scan decides


def test_a_record_is_identified_by_a_text_or_a_number_on_every_page() -> None:
    reader = PageReader(replace(HEADER, traits=ListTraits()))

    def read_records(*raws: bytes) -> Page:
        return reader.read(1, exchange(page(*raws)), parse_page(page(*raws)))

    first = read_records(b'{"usageId":"a","n":1,"k":7}', b'{"usageId":2,"n":1}')
    assert first.fields == ("usageId",)
    same = [b'{"n":[{"usageId":3}],"usageId":"a"}', '{"n":"ü","usageId" : 2}'.encode()]
    odd = [b'{"usageId":null}', b'{"usageId":{}}', b"{}", b"null", b'{"usageId":NaN}']
    odd += [b'{"usageId":"a","n":"\\ud800"}', b'{"usageId":2,"\xff":1}']
    assert read_records(*same).values[:, 1].tolist() == first.values[:, 1].tolist()
    later = read_records(*same, *odd)
    assert later.values[:, 1].tolist() == [*first.values[:, 1].tolist(), *[0] * len(odd)]
    assert first.values.all()


def test_a_key_is_the_same_however_a_server_spells_it() -> None:
    """Of 250 rows, 200 were loaded under COMPLETE: three servers spelled the keys in three ways."""
    reader = PageReader(replace(HEADER, traits=ListTraits("id", key_decided=True)))
    spellings = [
        ['"a/é"', r'"a\/é"', r'"a/\u00e9"'],
        ["12", "12.0", "120e-1", '"12"', r'"\u00312"'],
        ["0", "-0", "-0.0", '"0"'],
        ['""', '""'],
        [r'"\""', r'"\u0022"'],
        ["1e400"],
        [r'"\ud800"'],
    ]
    raws = [f'{{"id":{text}}}'.encode() for texts in spellings for text in texts]
    sent = page(*raws)
    numbers = iter(reader.read(1, exchange(sent), parse_page(sent)).values[:, 1].tolist())
    found = [{next(numbers) for _ in texts} for texts in spellings]
    assert [len(each) for each in found] == [1] * len(spellings)
    assert len(set[int]().union(*found)) == len(spellings)
    loaded = [{read_key(raw, "id") for raw in raws[:3]}, {read_key(raw, "id") for raw in raws[3:8]}]
    assert loaded == [{"a/é"}, {"12"}]
