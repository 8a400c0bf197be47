"""Lists that were counted or read in part: what is loaded, what is missing, what is evidence."""

import json

import msgspec
import pytest

from pipelines.clock import SYSTEM
from pipelines.state.proof import Grade
from pipelines.warehouse.archive import Manifest
from pipelines.warehouse.awaiting import Awaited
from pipelines.warehouse.fold import Terms
from pipelines.warehouse.publish import Edition, publish
from tests import archives
from tests.warehouse.conftest import NOON, Warehouse
from tests.warehouse.kept import counted, keep, night
from tests.warehouse.test_verify import faults

MISSING = "SELECT id FROM current.things WHERE missing_since IS NOT NULL ORDER BY id"


def page(*keys: int, number: int = 0) -> str:
    """Return a page of records."""
    return json.dumps([{"id": key, "n": number} for key in keys])


def test_a_row_of_superseded_pages_alone_is_not_loaded(warehouse: Warehouse) -> None:
    manifest = counted(warehouse, [page(1, 2), page(2, 3)], [page(1, 2), page(3, 4)])

    folded = warehouse.fold(manifest)

    assert (folded.read, folded.duplicates, folded.rows) == (4, 1, 3)
    assert warehouse.query("SELECT id FROM current.things ORDER BY id") == [(1,), (2,), (3,)]
    assert len(manifest.evidence) == 4


def test_a_known_row_of_superseded_pages_alone_is_missing(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest(page(1, 2, 3, 4)))
    for night_, (rows, missing, gone) in enumerate([(4, 1, 0), (3, 0, 1)]):
        folded = warehouse.fold(counted(warehouse, [page(1, 2, 3)], [page(1, 2, 3, 4)]))
        assert (folded.rows, folded.missing, folded.gone) == (rows, missing, gone), night_


def test_values_before_the_length_check_are_not_loaded(warehouse: Warehouse) -> None:
    for _night in range(2):
        warehouse.fold(counted(warehouse, [page(1, number=1)], [page(1, number=2)]))
        assert warehouse.query("SELECT n FROM history.things") == [(1,)]


def test_a_partial_reading_keeps_all_that_it_lacks(warehouse: Warehouse) -> None:
    """Nine of ten rows are not in it: no guard holds it back, and none of them is missing."""
    warehouse.terms = Terms()
    warehouse.fold(warehouse.manifest(page(*range(10))))
    for added in (1, 0):
        folded = warehouse.fold(warehouse.manifest(page(0, 99), grade=Grade.PARTIAL))
        found = (folded.rows, folded.added, folded.missing, folded.gone)
        assert found == (11, added, 0, 0)
    assert warehouse.query(MISSING) == []


def test_a_partial_reading_leaves_missing_what_it_lacks_too(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest(page(*range(20))))
    warehouse.fold(warehouse.manifest(page(*range(2, 20))))
    warehouse.fold(warehouse.manifest(page(1, 2, 3), grade=Grade.PARTIAL))
    assert warehouse.query(MISSING) == [(0,)]


def test_a_column_of_rows_that_a_partial_reading_lacks_has_not_stopped(
    warehouse: Warehouse,
) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1, "a": 1}, {"id": 2, "a": 2}, {"id": 3}]'))
    warehouse.fold(warehouse.manifest('[{"id": 3}, {"id": 4}]', grade=Grade.PARTIAL))
    assert warehouse.query("SELECT * FROM meta.schema_changes WHERE what = 'stopped'") == []


def test_a_counted_list_that_lacks_too_much_is_held(warehouse: Warehouse) -> None:
    warehouse.terms = Terms()
    warehouse.fold(warehouse.manifest(page(*range(10))))
    with pytest.raises(Awaited, match="5 of 10 rows are gone"):
        warehouse.fold(counted(warehouse, [page(*range(5))], [page(*range(10))]))


@pytest.mark.parametrize("grade", [Grade.COMPLETE_BY_COUNT, Grade.PARTIAL])
def test_without_a_key_a_row_counts_as_often_as_one_page_shows_it(
    warehouse: Warehouse, grade: Grade
) -> None:
    passes = ['[{"a": 1}, {"a": 1}, {"a": 2}]', '[{"a": 2}, {"a": 1}]', '[{"a": 1}, {"a": 3}]']
    for added in (4, 0):
        folded = warehouse.fold(warehouse.manifest(*passes, key=None, grade=grade))
        assert (folded.rows, folded.added, folded.missing) == (4, added, 0)


OLD = [Grade.COMPLETE_FOR_UNMOVED, Grade.UNSTABLE_ORDER]


@pytest.mark.parametrize("grade", OLD)
def test_manifests_of_older_grades_are_folded_as_before(warehouse: Warehouse, grade: Grade) -> None:
    """As they were written: without the fields that came later, with one that went."""
    nights: list[Manifest] = []
    for rows in (page(1, 2), page(2)):
        manifest = warehouse.manifest(rows, grade=grade)
        text = msgspec.to_builtins(manifest)
        for name in ("superseded", "repeated"):
            del text[name]
        for name in ("repeats", "places", "counted_at", "not_seen"):
            del text["proof"][name]
        text["proof"]["estimate"] = [1, 3]
        nights.append(msgspec.convert(text, Manifest))
    assert [warehouse.fold(each).missing for each in nights] == [0, 0]
    assert warehouse.query("SELECT count(*) FROM current.things") == [(2,)]


def lost(warehouse: Warehouse, sha256: str) -> None:
    (name,) = [each for each in archives.pages(warehouse.archive) if sha256 in each]
    archives.lost(warehouse.archive, name)


def test_verify_looks_for_superseded_pages(warehouse: Warehouse) -> None:
    manifest = night(warehouse, page(1, 2), superseded=[page(1, 2, 3)])
    publish(warehouse.work, warehouse.ledger, Edition("run", 3), SYSTEM)
    assert faults(warehouse) == []

    lost(warehouse, manifest.superseded[0].sha256)

    (fault,) = faults(warehouse)
    assert f"page {manifest.superseded[0].sha256} at offset 0 is missing" in str(fault)


PROOFS = "SELECT grade, repeats, places, counted_at, not_seen FROM meta.proofs"


def test_proofs_show_what_was_counted(warehouse: Warehouse) -> None:
    """A version published before there were the columns has none; the next one has them."""
    warehouse.query("CREATE SCHEMA meta")
    warehouse.query("CREATE TABLE meta.proofs (grade VARCHAR)")
    numbers = {"repeats": 1, "places": 3, "counted_at": NOON, "not_seen": None}
    manifest = keep(warehouse, counted(warehouse, [page(1, 2, 1)], [page(1)]), **numbers)
    warehouse.fold(manifest)

    publish(warehouse.work, warehouse.ledger, Edition("run", 3), SYSTEM)

    assert warehouse.query(PROOFS) == [("COMPLETE_BY_COUNT", 1, 3, NOON, None)]
