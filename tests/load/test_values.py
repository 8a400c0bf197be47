"""The lines of pitfalls.md on numbers, times and names."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from pipelines.core.errors import LoadFailed
from tests.load.scans import Reading, Warehouse

HUGE = 10**40
TIME = "TIMESTAMP WITH TIME ZONE"
NUMBERS = [
    ("12345678901234567.89", "DECIMAL(38,2)", Decimal("12345678901234567.89")),
    ("1e2", "BIGINT", 100),
    ("0.10", "DECIMAL(38,2)", Decimal("0.10")),
    ("18446744073709551617", "DECIMAL(38,0)", Decimal(2**64 + 1)),
    ("9223372036854775807", "BIGINT", 2**63 - 1),
    ("-9223372036854775808", "BIGINT", -(2**63)),
    ("9" * 38, "DECIMAL(38,0)", Decimal("9" * 38)),
    ("1.5e-3", "DECIMAL(38,4)", Decimal("0.0015")),
    ('"12.50"', "DECIMAL(38,2)", Decimal("12.50")),
    ('"12"', "VARCHAR", "12"),
    ('"007.50"', "VARCHAR", "007.50"),
    ('""', "VARCHAR", ""),
    ('"null"', "VARCHAR", "null"),
    ('"2026-10-01"', "DATE", date(2026, 10, 1)),
    ('"9999-12-31"', "DATE", date(9999, 12, 31)),
    ('"0001-01-01"', "DATE", date(1, 1, 1)),
    ('"0000-01-01"', "VARCHAR", "0000-01-01"),
    ('"10000-01-01"', "VARCHAR", "10000-01-01"),
    ('"2026-02-30"', "VARCHAR", "2026-02-30"),
    ('"2026-10-01T00:00:00+05:30"', TIME, datetime(2026, 9, 30, 18, 30, tzinfo=UTC)),
    ('"2024-02-29T00:00:00.5Z"', TIME, datetime(2024, 2, 29, 0, 0, 0, 500_000, tzinfo=UTC)),
    ('"2100-02-29"', "VARCHAR", "2100-02-29"),
    ('"2026-10-01T24:00:00Z"', "VARCHAR", "2026-10-01T24:00:00Z"),
    ('"2026-10-01T23:59:60Z"', "VARCHAR", "2026-10-01T23:59:60Z"),
    ('"2026-10-01 00:00+00"', TIME, datetime(2026, 10, 1, tzinfo=UTC)),
    ('"2026-10-01T00:00:00.1234567891Z"', "VARCHAR", "2026-10-01T00:00:00.1234567891Z"),
    ("9300000000000000000", "DECIMAL(38,0)", 9300000000000000000),
    ('"2026-10-01T00:00:00"', "VARCHAR", "2026-10-01T00:00:00"),
    ('"9999-12-31T23:59:59Z"', "VARCHAR", "9999-12-31T23:59:59Z"),
    ('"0001-01-01T00:00:00Z"', "VARCHAR", "0001-01-01T00:00:00Z"),
    ('"a\\u0000b"', "VARCHAR", "a\0b"),
    ('"a\tb"', "VARCHAR", "a\tb"),  # a tab that is not escaped
    ('"\\ud83d\\ude00"', "VARCHAR", "\N{GRINNING FACE}"),
    ("true", "BOOLEAN", True),
    ("[]", None, None),
    ("null", None, None),
]
LATER = [  # a value of the first scan, one of the second, the column then, and what `_extra` has
    ("1", "1.5", Decimal("1.5"), None),
    ("1", str(2**64), Decimal(2**64), None),
    ("1", f'"{2**63 - 1}"', 2**63 - 1, None),
    ("1", str(HUGE), None, {"a": str(HUGE)}),
    ("1", "1e-43", Decimal(0), {"a": "1e-43"}),
    ("0.5", "1e-30", Decimal(0), {"a": "1e-30"}),
    (
        "0.5",
        "1.2345678901234567891",
        Decimal("1.234567890123456789"),
        {"a": "1.2345678901234567891"},
    ),
    ("12345678901234567890123456789012345.5", "0.12345", None, {"a": "0.12345"}),
    ('"12345678901234567890123456789012345.5"', '"0.12345"', None, {"a": "0.12345"}),
    ("0.5", "9" * 38, None, {"a": "9" * 38}),
    ("1.5", '"2.5"', Decimal("2.5"), None),
    ("1.5", '"11e-4"', Decimal("0.0011"), None),
    ("1", '"11e-4"', None, {"a": "11e-4"}),
    ("1.5", '"02.5"', None, {"a": "02.5"}),
    ("1.5", '" 2.5"', None, {"a": " 2.5"}),
    ("1.5", "true", None, {"a": True}),
    ("1", '"2"', 2, None),
    ("1", '"2.5"', Decimal("2.5"), None),
    ('"x"', "7", "7", None),
    ('"x"', "true", "true", None),
    ('"x"', '{"b":[1.50]}', '{"b":[1.50]}', None),
    ('"1500"', '"12.50"', Decimal("12.50"), None),
    ('"1500"', "7", 7, None),
    ('"1500"', '"007.50"', "007.50", None),
    ('"1500"', '"1e3"', "1e3", None),
    ('"1500.0"', '"1500"', Decimal(1500), None),
    ('"1500"', '"1500.00"', Decimal(1500), None),
    ('"1500"', '"1500.0"', "1500.0", None),
    ('"1.5"', '"none"', None, {"a": "none"}),
    ('"1.5"', '"2.25"', Decimal("2.25"), None),
    ('"2026-10-01"', '"soon"', None, {"a": "soon"}),
    ('"2026-10-01"', '""', None, {"a": ""}),
    ('"2026-10-01T00:00:00Z"', '"2026-10-01"', datetime(2026, 10, 1, tzinfo=UTC), None),
    ('"2026-10-01"', '"2026-10-01T00:00:00Z"', datetime(2026, 10, 1, tzinfo=UTC), None),
    ('"9999-12-31"', '"2026-10-01T00:00:00Z"', None, {"a": "2026-10-01T00:00:00Z"}),
    ("true", "1", True, None),
    ("true", "2", None, {"a": "2"}),
    ("1", "true", None, {"a": True}),
    ("1", '{"b":1.50}', None, {"a": {"b": "1.50"}}),
    ("1", "[1,2]", None, {"a": ["1", "2"]}),
]
UNUSABLE: dict[str, str | bytes] = {
    "duplicate keys": '{"id":"bad","a":1,"a":2}',
    "duplicate keys and a space": '{"id":"bad","a":1,"a":2,"b" :3}',
    "duplicate keys in what has no column": '{"id":"bad","a":[[{"x":1,"x":2}]]}',
    "invalid UTF-8": b'{"id":"bad","t":"\xff"}',
    "duplicate keys inside": '{"id":"bad","o":{"a":1,"a":2}}',
    "NaN": '{"id":"bad","a":NaN}',
    "Infinity": '{"id":"bad","a":-Infinity}',
    "1e999": '{"id":"bad","a":1e999}',
    "lone surrogate": '{"id":"bad","a":"\\ud83d"}',
    "lone low surrogate": '{"id":"bad","a":"\\udc00"}',
    "surrogate in a name": '{"id":"bad","\\ud83d":1}',
    "depth 100": '{"id":"bad","a":' + "[" * 100 + "]" * 100 + "}",
    "depth 5,000": '{"id":"bad","a":' + "[" * 5_000 + "]" * 5_000 + "}",
}
KEYLESS = {
    "missing key": '{"a":1}',
    "null key": '{"id":null,"a":1}',
    "key that is true": '{"id":true}',
    "key that is an object": '{"id":{"a":1}}',
    "key twice": '{"id":"x","id":"y"}',
    "half of a surrogate pair": '{"id":"\\ud83d"}',
    "a number": "5",
    "a text": '"not an object"',
    "null": "null",
}


def members(values: Iterable[str]) -> str:
    """Write members `c0`, `c1`, … with some raw values."""
    return ",".join(f'"c{at}":{raw}' for at, raw in enumerate(values))


def test_a_value_gets_the_narrowest_exact_type(warehouse: Warehouse) -> None:
    warehouse.load([f'{{"id":"k",{members(raw for raw, *_ in NUMBERS)}}}'])
    types, (row,) = warehouse.types(), warehouse.current()
    found = [(raw, types.get(f"c{at}"), row.get(f"c{at}")) for at, (raw, *_) in enumerate(NUMBERS)]
    assert found == NUMBERS
    assert warehouse.extras() == [None]
    ours = [name for name, *_ in warehouse.rows("DESCRIBE current.usage") if name.startswith("_")]
    assert ours == ["_connection", "_key", "_valid_from", "_scan_id", "_page", "_row", "_extra"]


def test_a_value_that_stops_fitting_is_whole_in_extra(warehouse: Warehouse) -> None:
    first, second = (members(str(values[at]) for values in LATER) for at in (0, 1))
    warehouse.load([f'{{"id":"k",{first}}}'])
    records = [f'{{"id":"k",{second}}}', f'{{"id":"m",{first}}}']
    result = warehouse.load(records)
    row = warehouse.current()[0]
    rests = {f"c{at}": rest["a"] for at, (*_, rest) in enumerate(LATER) if rest}
    assert [row[f"c{at}"] for at in range(len(LATER))] == [column for *_, column, _ in LATER]
    assert warehouse.extras() == [rests, None]
    codes = {"values_in_extra", "values_rounded"}
    found = {each.subject for each in result.findings if each.code in codes}
    assert found == {f"$.{name}" for name in rests}
    changed = {each.severity for each in result.findings if each.code == "column_changed"}
    assert changed == {"info"}
    ended = warehouse.rows(
        "SELECT COLUMNS('c[0-9]+$') FROM history.usage WHERE _valid_to IS NOT NULL"
    )
    assert [None not in values for values in ended] == [True]
    warehouse.load([*records, f'{{"id":"n",{second}}}'])  # decoded alone
    assert warehouse.current()[2] == row | {"id": "n"}


def test_an_unusable_record_goes_to_quarantine_alone(warehouse: Warehouse) -> None:
    good = [f'{{"id":"k{at:04}","a":{at}}}' for at in range(600)]
    good[7] = good[7].replace(":", " : ")  # nobody can count its names quickly
    result = warehouse.load([*good[:300], *UNUSABLE.values(), *good[300:]])
    assert (result.new, result.quarantined) == (600, len(UNUSABLE))
    assert [row["a"] for row in warehouse.current()] == list(range(600))
    texts = [
        raw.decode(errors="replace") if isinstance(raw, bytes) else raw for raw in UNUSABLE.values()
    ]
    keys = [None if name == "depth 5,000" else "bad" for name in UNUSABLE]
    reasons = warehouse.rows(
        "SELECT r.reason FROM quarantine.records AS r WHERE r.row = 300 OR r.key IS NULL ORDER BY 1"
    )
    assert reasons == [
        ("It is nested more than 64 levels deep.",),
        ("The field `a` is in it twice.",),
    ]
    found = warehouse.rows(
        "SELECT r.page, r.row, r.key, r.raw FROM quarantine.records AS r ORDER BY r.row"
    )
    assert found == [(1, 300 + at, *each) for at, each in enumerate(zip(keys, texts, strict=True))]
    assert "records_quarantined" in {each.code for each in result.findings}


def test_a_record_without_a_readable_key_ends_no_row(warehouse: Warehouse) -> None:
    good = ['{"id":"a","a":1}', '{"id":"b","a":1}']
    warehouse.load(good)
    for name, raw in KEYLESS.items():
        result = warehouse.load([good[0], raw])
        assert (result.unchanged, result.deleted, result.quarantined) == (1, 0, 1), name
        assert "rows_not_deleted" in {each.code for each in result.findings}, name
        assert len(warehouse.current()) == 2, name
    assert warehouse.load(good[:1]).deleted == 1


TOGETHER = [  # a value of each of two records of one scan, and what their column has of them
    ('"1.5"', '"11e-4"', Decimal("1.5"), Decimal("0.0011")),
    ('"1e1"', '"10"', "1e1", "10"),  # two spellings of one number are texts
    ('"1e1"', '"2e1"', "1e1", "2e1"),
    ('"1.10"', '"1.1"', "1.10", "1.1"),
    ('"1.50000"', '"1.500000"', "1.50000", "1.500000"),
    ('"2026-10-01T00:00:00Z"', '"2026-02-30"', "2026-10-01T00:00:00Z", "2026-02-30"),
    ('"1.5"', '"15e-1"', "1.5", "15e-1"),
    ("0", f"0.{'0' * 37}1", 0, 0),  # and exactly in `_extra`
    (f"0.{'0' * 38}", "1", 0, 1),
    ('[1,"x"]', "[2,3]", ["1", "x"], ["2", "3"]),
    ("[[1]]", "[2]", ["[1]"], ["2"]),
    ('[{"b":1}]', '["x"]', ['{"b":1}'], ["x"]),
    ('["1.5"]', '["11e-4"]', ["1.5"], ["11e-4"]),
    ('"a"', '{"x":1}', "a", '{"x":1}'),
    ('{"x":1}', '"a"', '{"x":1}', "a"),
    ("[]", '"a"', "[]", "a"),
    ("[]", '{"a":1}', None, None),
    ('{"a":1}', "[]", None, None),
]


def test_values_of_one_scan_share_a_type(warehouse: Warehouse) -> None:
    first, second = (members(str(values[at]) for values in TOGETHER) for at in (0, 1))
    warehouse.load([f'{{"id":1,{first}}}', f'{{"id":2,{second}}}'])
    rows = warehouse.current()
    found = [tuple(row.get(f"c{at}") for row in rows) for at in range(len(TOGETHER))]
    assert found == [each[2:] for each in TOGETHER]
    assert [row[f"c{at}__a"] for row, at in zip(rows, (16, 17), strict=True)] == [None, None]
    assert warehouse.extras() == [{"c16": []}, {"c7": f"0.{'0' * 37}1", "c17": []}]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_field_is_what_most_of_its_values_are(warehouse: Warehouse, first: int) -> None:
    shapes = [
        '"l":{"b":7},"o":{"c":1},"e":{"x":1},"i":[{"d":1}]',
        '"l":[{"a":1},{"a":2}],"o":{"c":2},"e":[1],"i":[[1]]',
        '"l":[{"a":3}],"o":[{"c":3}],"e":[],"i":[{"d":2}]',
    ]
    ids = [(first + at) % 3 for at in range(3)]
    warehouse.load([f'{{"id":{at},{shapes[at]}}}' for at in ids])
    found = [(row["o__c"], row["l__count"], row["e"], row["i"]) for row in warehouse.current()]
    assert found == [
        (1, None, '{"x":1}', ['{"d":1}']),
        (2, 2, "[1]", ["[1]"]),
        (None, 1, "[]", ['{"d":2}']),
    ]
    assert [row["a"] for row in warehouse.current("usage__l")] == [1, 2, 3]
    assert warehouse.extras() == [{"l": {"b": "7"}}, None, {"o": [{"c": "3"}]}]


def test_a_list_or_object_that_stops_fitting_is_whole_in_extra(warehouse: Warehouse) -> None:
    first = '{"id":1,"a":[1.5],"o":{"b":1}}'
    warehouse.load([first])
    warehouse.load([first, '{"id":2,"a":["x",2],"o":"y"}', '{"id":3,"a":[3],"o":[1]}'])
    assert warehouse.extras() == [None, {"a": ["x", "2"], "o": "y"}, {"o": ["1"]}]
    assert [row["a"] for row in warehouse.current()] == [[Decimal("1.5")], None, [Decimal(3)]]


CHANGES = [  # a value of the first groups of records, one of the last, columns: values and type
    ("7", "1e-18", {"c0": (3, "DECIMAL(38,18)")}),
    ("[7,null]", "[1.5]", {"c1": (3, "DECIMAL(38,1)[]"), "c1__count": (3, "BIGINT")}),
    ("7", '"x"', {"c2": (3, "VARCHAR")}),
    ('"1.5"', '"20.25"', {"c3": (3, "DECIMAL(38,2)")}),
    ('"12"', "1.5", {"c4": (3, "DECIMAL(38,1)")}),
    ('"2026-10-01"', '"soon"', {"c5": (3, "VARCHAR")}),
    ('{"a":1}', '{"a":2.5,"b":3}', {"c6__a": (3, "DECIMAL(38,1)"), "c6__b": (1, "BIGINT")}),
    ("null", "true", {"c7": (1, "BOOLEAN")}),
]


def test_a_type_that_changes_in_the_middle_loses_nothing(warehouse: Warehouse) -> None:
    filler = "x" * 2_100_000  # more than is decoded at once
    first, last = (members(str(each[at]) for each in CHANGES) for at in (0, 1))
    raws = [f'{{"id":{at},"filler":"{filler}",{first if at < 2 else last}}}' for at in range(3)]
    warehouse.load(raws)
    columns = {name: column for *_, listed in CHANGES for name, column in listed.items()}
    assert warehouse.extras() == [None, None, None]
    types = warehouse.types()
    found = {
        name: (*warehouse.row(f"SELECT count(u.{name}) FROM current.usage AS u"), types[name])
        for name in columns
    }
    assert found == columns
    assert [row["c0"] for row in warehouse.current()] == [7, 7, Decimal("1e-18")]


@pytest.mark.long
def test_2_000_columns_and_10_mb_of_text_are_loaded(warehouse: Warehouse) -> None:
    members = ",".join(f'"f{at}":{[at] if at == 2 else at}' for at in range(2_000))
    text = "x" * 10_000_000
    result = warehouse.load([f'{{"id":"a",{members}}}', f'{{"id":"b","f1":1,"f0":"{text}"}}'])
    assert len(warehouse.types()) == 501  # an array has two
    first, second = warehouse.extras()
    assert len(first) == 1_501
    assert second is None  # f0 is a number in one record and a text in the other: it is text
    assert warehouse.current()[1]["f0"] == text
    assert {each.code for each in result.findings} == {"column_limit", "values_in_extra"}


def test_a_field_with_the_name_of_row_numbers_costs_no_value(warehouse: Warehouse) -> None:
    """DuckDB's `rowid` was hidden by it: amounts of other rows were written into rows."""

    def records(first: str) -> list[str]:
        amounts = [first, "11", "12", "13"]
        return [f'{{"id":{at},"rowid":{at % 2},"n":"{n}"}}' for at, n in enumerate(amounts)]

    warehouse.load(records("10"))
    warehouse.load(records("12.50"))  # the column is decided again, in all rows
    assert warehouse.types() == {"id": "BIGINT", "rowid_2": "BIGINT", "n": "DECIMAL(38,2)"}
    found = warehouse.rows("SELECT _key, n FROM history.usage ORDER BY _valid_from, _key")
    amounts = [10, 11, 12, 13, Decimal("12.5")]
    assert found == list(zip(["0", "1", "2", "3", "0"], amounts, strict=True))


def test_rows_without_numbers_are_not_read_again(warehouse: Warehouse) -> None:
    """As releases up to 0.2.0 named the column."""
    warehouse.load(['{"id":1,"rowid":7,"n":"10"}', '{"id":2,"rowid":7,"n":"11"}'])
    warehouse.db.execute("DROP VIEW current.usage")
    warehouse.db.execute("ALTER TABLE history.usage RENAME rowid_2 TO rowid")
    warehouse.db.execute("UPDATE meta.columns SET column_name = replace(column_name, '_2', '')")
    changed = '{"id":1,"rowid":7,"n":"12.50"}'
    with pytest.raises(LoadFailed, match="Rows of usage cannot be read again") as raised:
        warehouse.load(Reading([changed], complete=False))
    assert "versions rebuild" in raised.value.remedy
