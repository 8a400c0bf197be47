"""The lines of pitfalls.md on loading and history, and the guards."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.config.settings import Stream
from pipelines.core.errors import LoadFailed
from pipelines.load.load import LoadResult, create_tables, load_scan
from tests.load.scans import NEVER_HELD, Reading, Warehouse

TEN = [f'{{"id":{at},"a":1}}' for at in range(10)]
DEFAULT = Stream.model_construct()


def dump(warehouse: Warehouse) -> list[Any]:
    """Return everything in the tables."""
    query = "SELECT t.schema_name || '.' || t.table_name FROM duckdb_tables() AS t ORDER BY ALL"
    names = [name for (name,) in warehouse.rows(query) if not name.startswith("main")]
    return [(name, sorted(map(str, warehouse.rows(f"FROM {name}")))) for name in names]


def keys(warehouse: Warehouse) -> list[str]:
    found = warehouse.rows("SELECT u._key FROM current.usage AS u ORDER BY ALL")
    return [key for (key,) in found]


FREEZE = Stream.model_construct(contract="freeze")
HELD = {
    "an empty list that had rows": (Reading([]), DEFAULT, "is empty"),
    "more than 10 % of the rows gone": (
        Reading(TEN[:8]),
        DEFAULT,
        "2 of 10 rows are no longer in the list",
    ),
    "another key": (Reading(TEN, key="a"), DEFAULT, "primary key was `id` and is `a`"),
    "no key any more": (Reading(TEN, key=None), DEFAULT, "is the whole record now"),
    "a key that is none": (
        Reading(TEN, conflicting=['{"id":1,"a":2}', '{"id":2,"a":2}']),
        DEFAULT,
        "2 of 12 records have the primary key `id` of another record",
    ),
    "a key that the records share": (
        Reading([*TEN, '{"id":1,"a":2}', '{"id":2,"a":2}']),
        DEFAULT,
        "set key in [streams.usage] of settings.toml",
    ),
    "most keys missing": (Reading(['{"a":1}'] * 5 + TEN[:9]), DEFAULT, "5 of 14 records"),
    "frozen columns": (Reading([*TEN[:9], '{"id":9,"a":1.5}']), FREEZE, "another type: usage.a."),
}
NOT_HELD = {
    "10 % of the rows gone": (Reading(TEN[:9]), DEFAULT, 9),
    "an empty list that may be empty": (Reading([]), Stream.model_construct(allow_empty=True), 0),
    "an empty PARTIAL scan": (Reading([], complete=False), DEFAULT, 10),
    "a record with the key of another one": (
        Reading(TEN, conflicting=['{"id":1,"a":2}']),
        DEFAULT,
        10,
    ),
    "a configured key that is none": (
        Reading(TEN[:1], complete=False, conflicting=[f'{{"id":0,"a":{at}}}' for at in range(9)]),
        Stream.model_construct(key="id"),
        10,
    ),
    "one key missing": (Reading([*TEN[:9], '{"a":1}']), DEFAULT, 10),
    "rows absent from a PARTIAL scan": (Reading(TEN[:1], complete=False), DEFAULT, 10),
    "frozen columns with other values": (Reading([*TEN[:9], '{"id":9,"a":7}']), FREEZE, 10),
}


@pytest.mark.parametrize(("reading", "stream", "reason"), HELD.values(), ids=HELD)
def test_a_guard_holds_a_scan_until_it_is_approved_and_it_is_loaded_once(
    warehouse: Warehouse, reading: Reading, stream: Stream, reason: str
) -> None:
    warehouse.load(TEN)
    before = dump(warehouse)
    scan = warehouse.scan(reading)
    held = load_scan(warehouse.db, scan, stream)
    assert reason in str(held.held)
    assert held.findings == ()
    assert dump(warehouse) == before
    assert load_scan(warehouse.db, scan, stream, approved=True).held is None
    after = dump(warehouse)
    assert after != before
    assert load_scan(warehouse.db, scan, stream, approved=True) == LoadResult(scan.scan_id)
    assert dump(warehouse) == after


@pytest.mark.parametrize(("reading", "stream", "rows"), NOT_HELD.values(), ids=NOT_HELD)
def test_a_guard_lets_a_scan_pass(
    warehouse: Warehouse, reading: Reading, stream: Stream, rows: int
) -> None:
    warehouse.load(TEN, stream)
    assert warehouse.load(reading, stream).held is None
    assert len(keys(warehouse)) == rows


def test_a_configured_key_that_no_record_has_is_said(warehouse: Warehouse) -> None:
    """To approve the scan, as the finding says, would put every record into quarantine."""
    stream = Stream.model_construct(key="Id")
    held = warehouse.load(Reading([], conflicting=TEN, key="Id"), stream).held
    assert "correct key in [streams.usage] of settings.toml" in str(held)


def test_the_first_scan_may_be_empty(warehouse: Warehouse) -> None:
    assert warehouse.load(Reading([], key=None), DEFAULT).held is None
    assert warehouse.current() == []
    query = "SELECT r.purpose, r.status, r.received_at > r.sent_at, r.request_id FROM "
    assert warehouse.row(f"{query} meta.requests AS r") == ("page", 200, True, "abc")
    assert warehouse.load(TEN, DEFAULT).new == 10


def test_discard_leaves_out_new_fields_and_counts_them(warehouse: Warehouse) -> None:
    discard = Stream.model_construct(contract="discard")
    warehouse.load([*TEN[:9], '{"id":9,"d":1.5}'], discard)
    changed = ['{"id":8,"a":1e2,"d":2.5}', '{"id":9,"a":9223372036854775808,"d":1.25,']
    changed[1] += '"new":{"b":1,"c":[2,3]}}'
    widest = f'{{"id":7,"a":{2**63 - 1}}}'
    result = warehouse.load([*TEN[:7], widest, *changed], discard)
    assert warehouse.types() == {"id": "BIGINT", "a": "BIGINT", "d": "DECIMAL(38,1)"}
    assert warehouse.current()[7]["a"] == 2**63 - 1
    assert warehouse.extras()[-2:] == [None, {"a": "9223372036854775808", "d": "1.25"}]
    found = [each for each in result.findings if each.code == "values_discarded"]
    assert [(each.subject, each.severity) for each in found] == [("$.new", "info")]
    assert found[0].message.startswith(
        "Values of the new field $.new in usage that are not loaded: 3,"
    )


def test_another_spelling_of_the_same_is_no_new_version(warehouse: Warehouse) -> None:
    warehouse.load(['{"id":1,"a":1.50,"l":[{"x":1}],"b":[[1]],"c":[[{"d":1,"e":2}]]}', '{"id":0}'])
    again = '{"c": [[{"e":2,"d":1}]], "b": [[1]], "l": [{"x": 1}], "a": 1.5, "id": 1, "n": null}'
    result = warehouse.load([again, '{"id":-0.0}'])
    assert (result.changed, result.unchanged) == (0, 2)
    assert warehouse.row("SELECT count(*) FROM history.usage") == (2,)
    assert warehouse.load([again]).unchanged == 1


@pytest.mark.parametrize("key", ["id", None])
def test_more_than_half_of_the_rows_changed_at_once_is_said(
    warehouse: Warehouse, key: str | None
) -> None:
    def load(changed: int, rows: int) -> list[str]:
        raws = [f'{{"id":{at},"a":{1 + (at < changed)}}}' for at in range(rows)]
        findings = warehouse.load(Reading(raws, key=key), DEFAULT).findings
        return [each.message for each in findings if each.code == "rows_changed"]

    assert load(0, 99) == load(99, 99) == load(0, 100) == []  # the list had too few
    assert load(50, 100) == load(0, 100) == []
    (said,) = load(51, 100)
    assert said.startswith("51 of 100 rows of usage changed at once. Analysts see the new values")
    assert load(51, 160) == []


def test_a_record_without_a_key_says_so_in_quarantine(warehouse: Warehouse) -> None:
    result = warehouse.load(Reading(TEN, conflicting=['{"a":1}', '{"id":null}', '{"id":0}']))
    assert result.quarantined == 3
    found = warehouse.rows("SELECT r.key, r.reason FROM quarantine.records AS r ORDER BY r.row")
    no_key = (None, "Its key `id` is missing, or neither text nor a number.")
    other = ("0", "Another record of the scan has the same key and other content.")
    assert found == [no_key, no_key, other]


def test_a_load_names_a_table_that_it_only_altered(warehouse: Warehouse) -> None:
    warehouse.load(['{"id":"a","x":1}'])
    conflict = '{"id":"\\u0061","x":1.25}'  # it widens the column before it is known to be one
    result = warehouse.load(['{"id":"a","x":1}', conflict])
    assert (result.unchanged, result.quarantined, result.tables) == (1, 1, ("usage",))


def test_a_record_in_quarantine_is_there_once_and_adds_no_column(warehouse: Warehouse) -> None:
    odd = '{"id":2,"a":"text","a":1.5,"only":{"here":true},"l":[{"b":1}]}'
    result = warehouse.load(['{"id":1,"a":7}', '{"a":8}', odd, '{"id":3,"l":[]}'])
    assert (result.new, result.quarantined) == (2, 2)
    types = "SELECT column_name, type FROM meta.columns ORDER BY position"
    assert warehouse.rows(types) == [("id", "BIGINT"), ("a", "BIGINT"), ("l__count", "BIGINT")]


def test_of_copies_the_current_one_stays_and_one_is_loaded(warehouse: Warehouse) -> None:
    warehouse.load(TEN)
    other = '{"id":0,"a":2}'
    new = ['{"id":11,"a":1}', '{"id":11,"a":2}', '{"id":12}', '{"id":12}']
    again = '{"id":1, "a":1}'
    records = [other, again, *TEN[2:], *new]  # the conflicting one is alone on its page
    result = warehouse.load(Reading(records, conflicting=[TEN[0]], page_size=len(records)))
    assert (result.new, result.changed, result.unchanged, result.quarantined) == (2, 0, 10, 2)
    assert warehouse.current()[0]["a"] == 1
    found = warehouse.rows("SELECT r.key, r.raw FROM quarantine.records AS r ORDER BY r.key")
    assert found[0] == ("0", other)
    assert found[1] == ("11", max(new[:2], key=lambda raw: sha256(raw.encode()).digest()))
    assert warehouse.load([other, again, *TEN[2:]]).changed == 1


def test_requests_of_earlier_scans_stay_if_they_brought_a_row(warehouse: Warehouse) -> None:
    def load(*records: str, connection: str = "default") -> list[tuple[str, int]]:
        warehouse.load(Reading(records, page_size=2, connection=connection))
        requests = "SELECT r.scan_id, r.page FROM meta.requests AS r ORDER BY ALL"
        return [(scan, page) for scan, page in warehouse.rows(requests)]

    def pages(scan: int, *numbers: int) -> list[tuple[str, int]]:
        return [(f"scan{scan:03}", number) for number in numbers]

    first = pages(1, 1, 2, 3)
    assert load(*TEN[:6]) == first
    assert load(*TEN[:6]) == first + pages(2, 1, 2, 3)  # the newest one has all of them
    bad = '{"id":4,"a":NaN}'
    changed = [*TEN[:2], '{"id":2,"a":"new"}', TEN[3], bad, TEN[5]]
    assert load(*changed) == first + pages(3, 1, 2, 3)
    assert load(*TEN[:6], connection="other") == first + pages(3, 1, 2, 3) + pages(4, 1, 2, 3)
    # The record in quarantine is that of the newest scan now.
    assert load(*changed) == first + pages(3, 2) + pages(4, 1, 2, 3) + pages(5, 1, 2, 3)


def test_quarantine_is_kept_by_partial_scans_and_replaced_by_complete_ones(
    warehouse: Warehouse,
) -> None:
    bad, query = '{"id":9,"a":NaN}', "SELECT r.raw FROM quarantine.records AS r"
    warehouse.load(TEN)
    for reading in (
        Reading([*TEN[:9], bad]),
        Reading(TEN[:2], complete=False),
        Reading([bad], complete=False),
    ):
        assert warehouse.load(reading, DEFAULT).deleted == 0
        assert (len(keys(warehouse)), warehouse.rows(query)) == (10, [(bad,)])
    assert warehouse.load(TEN).quarantined == 0
    assert warehouse.rows(query) == []


def test_a_list_without_a_key_keeps_equal_records_apart(warehouse: Warehouse) -> None:
    one, two = '{"a":1}', '{"a":2}'
    for raws, expected in (
        ([one, one, two], (3, 0, 0)),
        ([one, one, one, two], (1, 0, 3)),
        ([one, '{"a":3}'], (1, 3, 1)),
    ):
        result = warehouse.load(Reading(raws, key=None))
        assert (result.new, result.deleted, result.unchanged) == expected
    assert sorted(key[-2:] for key in keys(warehouse)) == ["#1", "#1"]


def test_another_key_ends_every_row_also_where_the_scan_is_partial(warehouse: Warehouse) -> None:
    """Rows of two keys beside one another would count twice."""
    warehouse.load(['{"id":1,"no":"a"}', '{"id":2,"no":"b"}'])
    partial = Reading(['{"id":1,"no":"a"}', '{"id":3}'], complete=False, key="no")
    result = load_scan(warehouse.db, warehouse.scan(partial), NEVER_HELD, approved=True)
    assert (result.new, result.deleted, result.quarantined) == (1, 2, 1)
    assert warehouse.rows("SELECT u._key, u.id FROM current.usage AS u") == [("a", 1)]


def test_connections_and_streams_do_not_touch_each_other(warehouse: Warehouse) -> None:
    warehouse.load(Reading(TEN, conflicting=['{"id":1}']))
    warehouse.load(Reading(TEN[:1], connection="other"))
    warehouse.load(Reading(['{"id":0,"b":1.5}'], connection="other"))
    again = '{"id":0, "b":1.5}'
    warehouse.load(Reading([again], connection="other"))
    warehouse.load(Reading(TEN, stream="billing", key=None))
    query = "SELECT u._connection, count(*) FROM current.usage AS u GROUP BY ALL ORDER BY ALL"
    assert warehouse.rows(query) == [("default", 10), ("other", 1)]
    assert len(warehouse.current("billing")) == 10
    assert warehouse.row("SELECT r.connection FROM quarantine.records AS r") == ("default",)
    assert warehouse.load([again, *TEN[1:]]).changed == 1
    assert warehouse.load(Reading(TEN, stream="billing", key=None), DEFAULT).held is None


def test_a_failed_load_leaves_the_tables_unchanged(warehouse: Warehouse) -> None:
    warehouse.load(TEN)
    warehouse.db.execute("ALTER TABLE quarantine.records DROP COLUMN raw")
    before = dump(warehouse)
    with pytest.raises(LoadFailed, match="Nothing of it is loaded"):
        warehouse.load(TEN[:9])
    assert dump(warehouse) == before
    warehouse.db.execute("ALTER TABLE quarantine.records ADD COLUMN raw VARCHAR")
    assert warehouse.load(TEN[:9], NEVER_HELD).deleted == 1


def test_a_commit_that_fails_is_reported_with_its_own_reason(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "version.duckdb") as db:
        create_tables(db)
        db.execute("SET checkpoint_threshold = '1B'")
        db.execute("SET debug_checkpoint_abort = 'before_header'")
        with pytest.raises(LoadFailed, match="Checkpoint aborted"):
            Warehouse(tmp_path, db).load(TEN)


def test_a_key_of_several_fields_is_spelled_as_a_list(warehouse: Warehouse) -> None:
    key = '["source","id"]'

    def load(*records: str) -> LoadResult:
        return warehouse.load(Reading(records, key=key))

    load('{"source":"a","id":"1","n":1}', '{"source":"b","id":1.0,"n":2}', '{"source":"c","n":3}')
    keys = "SELECT usage._key, usage.n FROM current.usage AS usage ORDER BY ALL"
    assert warehouse.rows(keys) == [('["a","1"]', 1), ('["b","1"]', 2)]
    quarantined = "SELECT records.key, records.reason FROM quarantine.records AS records"
    assert warehouse.rows(quarantined) == [
        (None, f"Its key `{key}` is missing, or neither text nor a number.")
    ]
    result = load('{"source":"a","id":"1","n":7}', '{"source":"b","id":"1","id":"1"}')
    assert (result.changed, result.deleted, result.quarantined) == (1, 0, 1)
    assert warehouse.rows(keys) == [('["a","1"]', 7), ('["b","1"]', 2)]
