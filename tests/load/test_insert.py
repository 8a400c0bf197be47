"""What a load writes has a column for each value: none is dropped in silence."""

from dataclasses import replace

import msgspec
import pytest

from pipelines.load.load import load_scan
from pipelines.load.target import Target
from tests.archive.test_format import LaterProof
from tests.load.scans import NEVER_HELD, Reading, Warehouse


def test_a_value_without_a_column_is_a_defect_that_is_named(warehouse: Warehouse) -> None:
    warehouse.load(Reading(['{"id":"a"}']))
    scan = warehouse.scan(Reading(['{"id":"b"}']))
    known = msgspec.structs.asdict(scan.completeness)
    later = replace(scan, completeness=LaterProof(**known, later_figure=2))
    with pytest.raises(
        LookupError, match=r"Table meta\.loads has no column later_figure for a value"
    ):
        load_scan(warehouse.db, later, NEVER_HELD)
    assert warehouse.db.execute("SELECT _key FROM current.usage").fetchall() == [("a",)]
    warehouse.db.execute("ALTER TABLE meta.loads ADD COLUMN later_figure BIGINT")
    load_scan(warehouse.db, later, NEVER_HELD)
    said = "SELECT scan_id, later_figure FROM meta.loads ORDER BY scan_id"
    assert warehouse.db.execute(said).fetchall() == [("scan001", None), ("scan002", 2)]


def test_every_table_of_a_load_refuses_what_has_no_column(warehouse: Warehouse) -> None:
    warehouse.load(Reading(['{"id":"a"}']))
    target = Target(warehouse.db, warehouse.scan(Reading([])))
    for table in ("meta.requests", "meta.load_findings", "meta.columns", "quarantine.records"):
        with pytest.raises(LookupError, match=f"Table {table} has no column b for"):
            target.insert(table, [{"stream": "usage"}, {"b": 1}])
