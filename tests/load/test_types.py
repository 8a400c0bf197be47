"""Types that settings declare, rows that other rules loaded, and columns that are decided again."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from pipelines.config.settings import Stream
from pipelines.load.older import read_older_rows
from tests.load.scans import NEVER_HELD, Reading, Warehouse

HALF_PAST_ONE = datetime(2026, 9, 30, 13, 5, tzinfo=UTC)
NEW_YORK = {"type": "time", "format": "%m/%d/%Y %H:%M", "zone": "America/New_York"}
DECLARED: list[tuple[Any, str, Any]] = [
    ("epoch_seconds", "1790773500", HALF_PAST_ONE),
    ("epoch_seconds", '"1790773500.0"', HALF_PAST_ONE),
    ("epoch_milliseconds", "1790773500000", HALF_PAST_ONE),
    (NEW_YORK, '"09/30/2026 09:05"', HALF_PAST_ONE),
    ({"type": "time", "zone": "Europe/Berlin"}, '"2026-09-30 15:05"', HALF_PAST_ONE),
    ({"type": "time", "zone": "Europe/Berlin"}, '"2026-09-30T13:05:00Z"', HALF_PAST_ONE),
    ("text", "1500.50", "1500.50"),
    ("text", '{"a":1.50}', '{"a":1.50}'),
    ("json", '"x"', '"x"'),
    ("decimal", '"007.50"', Decimal("7.50")),
    ("integer", '"0042"', 42),
    ("integer", '"4.2"', None),
    ("boolean", '"TRUE"', True),
    ("date", '"2026-09-30"', HALF_PAST_ONE.date()),
    ({"type": "date", "format": "%d.%m.%Y"}, '"30.09.2026"', HALF_PAST_ONE.date()),
    ("epoch_seconds", '"soon"', None),
]


def declaring(types: dict[str, Any]) -> Stream:
    stream = TypeAdapter(Stream).validate_python(
        {"name": "usage", "path": "/v2/usage", "types": types}
    )
    return stream.model_copy(update=NEVER_HELD.model_dump(exclude={"types"}))


def test_a_declared_type_reads_the_spelling_that_settings_say(warehouse: Warehouse) -> None:
    types = {f"c{at}": kind for at, (kind, *_) in enumerate(DECLARED)}
    members = ",".join(f'"c{at}":{raw}' for at, (_, raw, _) in enumerate(DECLARED))
    warehouse.load([f'{{"id":"k",{members}}}'], declaring(types))
    (row,) = warehouse.current()
    found = [row[f"c{at}"] for at in range(len(DECLARED))]
    assert found == [value for *_, value in DECLARED]
    left = {f"c{at}" for at, value in enumerate(found) if value is None}
    assert warehouse.extras()[0].keys() == left
    assert row["c0__offset"] == "Z"
    assert row["c3__offset"] == "-04:00"


def test_no_row_is_read_again_where_nothing_was_ever_loaded(warehouse: Warehouse) -> None:
    assert read_older_rows(warehouse.db, {}, declare=True) == set()


@pytest.mark.parametrize(
    "kind", ["money", {"type": "text", "format": "%Y"}, {"type": "time", "format": "%m/%d/%Y"}]
)
def test_a_type_that_says_nothing_is_refused(kind: Any) -> None:
    with pytest.raises(ValidationError):
        declaring({"a": kind})


@pytest.mark.parametrize(
    ("form", "fault"),
    [
        ("%d.%m.", "must have a day, a month and a year"),
        ("%H:%M", "must have a day, a month and a year"),
        ("%m/%d/%Y %I:%M", "needs %p"),
        ("%Y-%m-%d %H:%M %Z", "must not have %Z"),
    ],
)
def test_a_format_that_would_make_another_time_is_refused(form: str, fault: str) -> None:
    """`strptime` takes 1900 for a missing year, and the declared zone although UTC is named."""
    with pytest.raises(ValidationError, match=fault):
        declaring({"a": {"type": "time", "format": form, "zone": "America/New_York"}})
    declaring({"a": NEW_YORK | {"format": "100%%Z %d %b %y %I %p"}})


def test_what_a_declared_column_does_not_say_is_in_extra(warehouse: Warehouse) -> None:
    """Nine digits of a second in a declared zone were cut, and a change of them was none."""
    stream = declaring({"seen": {"type": "time", "zone": "Europe/Berlin"}})
    texts = [f"2026-09-30 15:05:00.{digits}" for digits in ("123456", "123456000", "123456789")]
    warehouse.load([f'{{"id":{at},"seen":"{text}"}}' for at, text in enumerate(texts)], stream)
    found = [row["seen"] for row in warehouse.current()]
    assert found == [HALF_PAST_ONE.replace(microsecond=123456)] * 3
    assert warehouse.extras() == [None, None, {"seen": texts[2]}]
    changed = f'{{"id":2,"seen":"{texts[2][:-1]}0"}}'
    assert warehouse.load(Reading([changed], complete=False), stream).changed == 1


def test_a_declared_column_of_json_is_null_where_a_record_has_no_value(
    warehouse: Warehouse,
) -> None:
    records = ['{"id":1,"a":"x"}', '{"id":2}', '{"id":3,"a":null}']
    warehouse.load(records, declaring({"a": "json"}))
    assert [row["a"] for row in warehouse.current()] == ['"x"', None, None]


def test_a_rebuild_gives_rows_of_a_checkpoint_their_declared_types(warehouse: Warehouse) -> None:
    records = ['{"id":"k","at":1790773500,"n":"7"}', '{"id":"m","at":"never","n":"8"}']
    warehouse.load(records)
    assert warehouse.types()["at"] == "VARCHAR"
    stream = declaring({"at": "epoch_seconds", "n": "integer"})
    read_older_rows(warehouse.db, {"usage": stream}, declare=False)
    assert warehouse.types()["at"] == "VARCHAR"
    assert read_older_rows(warehouse.db, {"usage": stream}, declare=True) == {"usage"}
    assert [(row["at"], row["n"]) for row in warehouse.current()] == [(HALF_PAST_ONE, 7), (None, 8)]
    assert warehouse.extras() == [None, {"at": "never"}]
    assert warehouse.load(records, stream).unchanged == 2
    assert not read_older_rows(warehouse.db, {"usage": stream}, declare=True)


def test_texts_of_earlier_scans_count_where_a_column_is_decided_again(warehouse: Warehouse) -> None:
    first = '{"id":"k","n":"1500","m":"1500"}'
    warehouse.load([first])
    warehouse.load([first, '{"id":"m","n":"1500.0","m":"12.50"}'])  # of which only one is staged
    assert warehouse.types() == {"id": "VARCHAR", "n": "VARCHAR", "m": "DECIMAL(38,2)"}
    assert [row["n"] for row in warehouse.current()] == ["1500", "1500.0"]


def test_a_column_that_is_decided_again_has_room_for_the_widest_number(
    warehouse: Warehouse,
) -> None:
    widest = "9" * 38
    warehouse.load([f'{{"id":"k","n":"{widest}"}}'])
    stream = declaring({"n": "decimal"})
    assert read_older_rows(warehouse.db, {"usage": stream}, declare=True) == {"usage"}
    assert warehouse.types()["n"] == "DECIMAL(38,0)"
    assert warehouse.current() == [{"id": "k", "n": Decimal(widest), "_extra": None}]


def test_only_columns_of_text_that_are_not_settled_have_candidates(warehouse: Warehouse) -> None:
    warehouse.load(['{"id":"k","digits":"1500","number":1,"items":[{"n":1}],"values":["x"]}'])
    query = "SELECT c.column_name FROM meta.columns AS c WHERE c.candidates <> '' ORDER BY ALL"
    assert warehouse.rows(query) == [("digits",)]


OLDER = """
INSERT INTO history.usage BY NAME
    SELECT * REPLACE ('m' AS _key, 'm' AS id) FROM history.usage;
ALTER TABLE history.usage ALTER COLUMN tiny SET DATA TYPE DECIMAL(38,31);
ALTER TABLE history.usage ALTER COLUMN used SET DATA TYPE VARCHAR
    USING '2026-09-30 13:05:00 UTC';
ALTER TABLE history.usage DROP COLUMN used__offset;
DELETE FROM meta.columns WHERE column_name = 'used__offset';
UPDATE meta.columns SET type = 'DECIMAL(38,31)' WHERE column_name = 'tiny';
UPDATE meta.columns SET type = 'VARCHAR' WHERE column_name = 'used';
UPDATE meta.columns SET candidates = NULL;
UPDATE history.usage SET
    amount = '12.50', count = NULL, flag = NULL, note = NULL,
    tiny = 0.0000000000000017763568394002505,
    _extra = '{"count":"2.5","flag":"1","note":"7","other":{"x":"1"}}'
WHERE _key = 'm';
"""


def test_rows_that_older_rules_loaded_are_read_again(warehouse: Warehouse) -> None:
    # As 0.2.0 stored them: text, NULL beside `_extra`, and more digits than a column has now.
    fields = '"amount":"1500","count":1,"used":"2026-09-30 13:05:00 UTC","tiny":1e-18'
    warehouse.load([f'{{"id":"k",{fields},"flag":true,"note":"x"}}'])
    warehouse.db.execute(OLDER)
    assert read_older_rows(warehouse.db, {}, declare=False) == {"usage"}
    types = warehouse.types()
    decimals = [types[name] for name in ("amount", "count", "tiny")]
    assert decimals == ["DECIMAL(38,2)", "DECIMAL(38,1)", "DECIMAL(38,18)"]
    row = warehouse.current()[1]
    assert (row["amount"], row["count"], row["note"]) == (Decimal("12.50"), Decimal("2.5"), "7")
    assert (row["used"], row["used__offset"], row["flag"]) == (HALF_PAST_ONE, "Z", None)
    assert row["tiny"] == Decimal("0.000000000000001776")
    left = {"tiny": "0.0000000000000017763568394002505", "flag": "1", "other": {"x": "1"}}
    assert warehouse.extras() == [None, left]
    assert not read_older_rows(warehouse.db, {}, declare=False)
