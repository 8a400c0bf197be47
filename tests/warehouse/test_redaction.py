"""Redaction: which records say an identifier, and pages that keep everything else to the byte."""

import json
from datetime import UTC, datetime

import pytest

from pipelines.api import items, page
from pipelines.state import redactions
from pipelines.warehouse import redaction
from pipelines.warehouse.redaction import Act, Sought
from tests import archives
from tests.warehouse.conftest import Warehouse

ACT = Act("ann", datetime(2026, 11, 21, tzinfo=UTC), "request 7")
SAYING = {
    "its key": (b'{"id": "p-17"}', True),
    "deep within": (b'{"a": [{"b": {"c": ["x", "p-17"]}}]}', True),
    "the name of a member": (b'{"totals": {"p-17": 4}}', True),
    "with escapes": (rb'{"id": "\u0070-17"}', True),
    "twice under one name": (b'{"id": "p-17", "id": "other"}', True),
    "with NaN beside it": (b'{"id": "p-17", "amount": NaN}', True),
    "unreadable": (b'{"id": "p-17", "text": "\xff"}', True),
    "another": (b'{"id": "p-170"}', False),
    "a part of a text": (b'{"text": "see p-17"}', False),
    "nothing": (b"{}", False),
}
NUMBERS = [(b'{"id": 1234}', True), (b'{"id": 1234.0}', True), (b'{"id": "1234"}', True)]
NUMBERS += [(b'{"id": 12345}', False), (b'{"id": true}', False), (b'{"id": null}', False)]


@pytest.mark.parametrize("name", SAYING)
def test_a_record_says_an_identifier_anywhere(name: str) -> None:
    record, says = SAYING[name]
    assert Sought("p-17").is_in(record) is says


@pytest.mark.parametrize(("record", "says"), NUMBERS)
def test_an_identifier_may_be_a_number(record: bytes, says: bool) -> None:  # noqa: FBT001
    assert Sought("1234").is_in(record) is says


def test_a_part_of_a_longer_text_only_where_it_is_asked_for() -> None:
    assert Sought("p-17", within=True).is_in(b'{"text": "see p-17"}')


@pytest.mark.parametrize(
    "body",
    [
        b'{"data":[{"id":1}, {"id": 2} , 3], "pagination":{"limit":3,"offset":0,"has_more":true}}',
        b'{"pagination":{"limit":3,"offset":0,"has_more":false},"data":[ {"id":"]}"},NaN,[1,2]\n]}',
    ],
)
@pytest.mark.parametrize("rows", [{0}, {1}, {2}, {0, 2}, {0, 1, 2}])
def test_a_page_keeps_all_else(body: bytes, rows: set[int]) -> None:
    blank = items.blanked(body, rows)
    before, after = page.records(body), page.records(blank)
    assert [bytes(text) for text in after] == [
        b"null" if row in rows else bytes(text) for row, text in enumerate(before)
    ]
    assert json.loads(blank)["pagination"] == json.loads(body)["pagination"]


def erased(warehouse: Warehouse, identifier: str) -> int:
    archive = warehouse.archive
    found = list(redaction.found(archive, Sought(identifier), lambda _done, _all: None))
    made = [redaction.redacted(archive, digest, rows, ACT) for digest, rows in found if rows]
    redactions.add(warehouse.ledger, made)
    archive.redact([*made, *(archive.redactions[each] for each, rows in found if not rows)])
    return len(made)


def test_reading_the_old_page_gives_what_is_left_of_it(warehouse: Warehouse) -> None:
    manifest = warehouse.manifest('[{"id": "p-1"}, {"id": "p-2"}]', '[{"id": "p-3"}]')
    first, second = (page.sha256 for page in manifest.pages)

    assert erased(warehouse, "p-1") == 1

    for archive in (warehouse.archive, warehouse.other()):
        texts = [bytes(text) for text in page.records(archive.body(first))]
        assert texts == [b"null", b'{"id": "p-2"}']
        assert archive.erased(first) == {0}
        assert archive.erased(second) == frozenset()
        assert archive.has(first)
    assert first not in warehouse.archive.pages()
    (recorded,) = redactions.every(warehouse.ledger)
    assert recorded == warehouse.other().redactions[first]
    assert (recorded.by, recorded.reason) == ("ann", "request 7")


def test_a_page_can_be_redacted_again_and_stays_so_where_it_is_sent_again(
    warehouse: Warehouse,
) -> None:
    manifest = warehouse.manifest('[{"id": "p-1"}, {"id": "p-2"}, {"id": "p-3"}]')
    (first,) = (page.sha256 for page in manifest.pages)
    body = warehouse.archive.body(first)
    assert (erased(warehouse, "p-1"), erased(warehouse, "p-3")) == (1, 1)

    assert warehouse.archive.erased(first) == {0, 2}
    assert warehouse.archive.put(body) == first
    assert warehouse.archive.erased(first) == {0, 2}
    assert b"p-1" not in warehouse.archive.body(first)
    assert len(list(warehouse.archive.pages())) == 1


def test_what_a_kill_left_is_removed_by_the_next(warehouse: Warehouse) -> None:
    warehouse.manifest('[{"id": "p-1"}, {"id": "p-2"}]')
    (file,) = archives.pages(warehouse.archive)
    content = warehouse.archive.store.get(file)
    erased(warehouse, "p-1")
    warehouse.archive.store.put(file, content)

    assert erased(warehouse, "p-1") == 0
    assert not warehouse.archive.store.has(file)
