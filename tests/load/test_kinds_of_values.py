"""Random histories of one field, against a model in plain Python of what a column holds."""

import json
import random
import re
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines.load.older import read_older_rows
from tests.effort import EFFORT
from tests.load.scans import Warehouse, open_warehouse

EXACT = Context(prec=100)
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
ZONE = re.compile(r"(?i) ?(z|utc|[+-][0-9]{2}(:?[0-9]{2})?)$")
# Raw JSON values by what they are.
POOLS = {
    "integer": ["0", "1", "-7", "1500", "9223372036854775807"],
    "long": ["9223372036854775808", "1" + "0" * 30, "9" * 38],
    "decimal": ["0.10", "12.5", "-0.005", "1e-3", "1.7763568394002505e-15", "1e2"],
    "digits": ['"1500"', '"25"', '"-3"'],
    "number text": ['"12.50"', '"7.25"', '"1500"'],
    "exponent": ['"11e-4"', '"2E5"'],
    "odd number": ['"007"', '" 5"', '"1_000"', '"0x1A"', '"inf"', '"1."', '"+1"'],
    "spellings": ['"1.10"', '"1.1"'],
    "boolean": ["true", "false"],
    "date": ['"2026-09-30"', '"2024-02-29"'],
    "far date": ['"9999-12-31"', '"0001-01-01"'],
    "time": ['"2026-09-30T13:05:00Z"', '"2026-09-30T13:05:00.250-03:00"'],
    "odd time": [
        '"2026-09-30 13:05Z"',
        '"2026-09-30t13:05:00.123456789z"',
        '"2026-09-30 13:05 UTC"',
    ],
    "no time": ['"2026-09-30T13:05:00"', '"09/30/2026"', '"2026-02-30"'],
    "text": ['"A-7"', '""', '"null"', '"ünï"'],
    "object": ['{"a":1.50}', '{"a":"x","b":[1]}'],
    "list": ["[1,2]", '["x"]', "[]"],
    "nothing": ["null"],
}
Record = dict[str, str]  # raw JSON values by field
BITS = {"0": False, "1": True, "true": True, "false": False}


def spelled(raw: str) -> Any:
    """Return a raw value as `_extra` spells it."""
    return json.loads(raw, parse_int=str, parse_float=str)


def cell(kind: str, raw: str) -> tuple[Any, bool]:
    """Return what a column holds of a raw value, and whether exactly; None if it takes it not."""
    value = json.loads(raw, parse_float=Decimal)
    if kind == "VARCHAR":
        return (value, True) if isinstance(value, str) else (raw, True)
    if kind in {"BOOLEAN", "DATE"}:
        return BITS.get(raw) if kind == "BOOLEAN" else day(value), True
    if kind.startswith("TIMESTAMP"):
        return moment(value)
    is_spelled = isinstance(value, str)
    text = value if is_spelled else raw
    if isinstance(value, bool | dict | list) or not NUMBER.fullmatch(text):
        return None, True
    if is_spelled and kind == "BIGINT" and "e" in text.lower():
        return None, True
    return number(kind, Decimal(text))


def number(kind: str, exact: Decimal) -> tuple[Any, bool]:
    rounded = exact.quantize(Decimal("1e-18"), ROUND_HALF_EVEN, EXACT)
    scale = 0 if kind == "BIGINT" else int(kind.split(",")[1].rstrip(")"))
    fitting = rounded.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_EVEN, EXACT)
    if fitting != rounded or fitting.copy_abs() >= 10 ** (38 - scale):
        return None, True
    if kind == "BIGINT" and not -(2**63) <= fitting < 2**63:
        return None, True
    return fitting, fitting == exact


def day(value: Any) -> date | None:
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def moment(value: Any) -> tuple[Any, bool]:
    found = day(value)
    if found is not None:
        at = datetime(found.year, found.month, found.day, tzinfo=UTC)
        return (at if date(1, 1, 2) < found < date(9999, 12, 30) else None), True
    if not isinstance(value, str) or not ZONE.search(value):
        return None, True
    zone = ZONE.search(value)
    assert zone
    offset = {"z": "+00:00", "utc": "+00:00"}.get(zone[1].lower(), zone[1])
    try:
        at = datetime.fromisoformat(ZONE.sub("", value).upper().replace(" ", "T") + offset)
    except ValueError:
        return None, True
    digits = re.search(r"\.(\d+)", value)
    return at.astimezone(UTC), digits is None or not digits[1][6:].strip("0")


def check(warehouse: Warehouse, raws: dict[tuple[str, int], Record]) -> None:
    """Require every row version to hold its raw values; `raws` is by key and number of version."""
    types = warehouse.types()
    for field in {field for record in raws.values() for field in record}:
        if field in types and f"{field}__count" not in types:
            check_field(warehouse, raws, field, types[field])


def check_field(
    warehouse: Warehouse, raws: dict[tuple[str, int], Record], field: str, kind: str
) -> None:
    found = warehouse.rows(
        "SELECT h._key, row_number() OVER (PARTITION BY h._key ORDER BY h._valid_from), "
        f"h.{field}, h._extra FROM history.usage AS h"
    )
    for key, version, value, extra in found:
        raw = raws[key, version][field]
        expected, is_exact = (None, True) if raw == "null" else cell(kind, raw)
        about = (field, kind, raw)
        assert value == expected, about
        left = json.loads(extra or "{}").get(field)
        is_left = raw != "null" and (expected is None or not is_exact)
        assert left == (spelled(raw) if is_left else None), about


def load(warehouse: Warehouse, scans: list[list[Record]]) -> None:
    """Load scans of the records k0, k1, …; compare what columns hold after each of them."""
    raws = dict[tuple[str, int], Record]()
    last = dict[str, int]()
    for scan in scans:
        lines = []
        for at, record in enumerate(scan):
            fields = "".join(f',"{field}":{raw}' for field, raw in record.items())
            lines.append(f'{{"id":"k{at}"{fields}}}')
        warehouse.load(lines)
        stored = dict(
            warehouse.rows("SELECT h._key, count(*) FROM history.usage AS h GROUP BY ALL")
        )
        for at, record in enumerate(scan):
            key = f"k{at}"
            if stored[key] > last.get(key, 0):
                raws[key, stored[key]] = record
            last[key] = stored[key]
        check(warehouse, raws)
    warehouse.db.execute("UPDATE meta.columns SET candidates = NULL")
    read_older_rows(warehouse.db, {}, declare=False)
    check(warehouse, raws)


def random_scans(seed: int) -> list[list[Record]]:
    """Return up to five scans of a field whose values change in what they are."""
    chance = random.Random(seed)
    scans = []
    for _ in range(chance.randint(1, 5)):
        names = chance.sample([*POOLS], chance.choice([1, 1, 2, 3]))
        pool = [raw for name in names for raw in POOLS[name]]
        scans.append([{"a": chance.choice(pool)} for _ in range(chance.randint(1, 6))])
    return scans


@pytest.mark.timeout(900)
@pytest.mark.parametrize("histories", [4, pytest.param(30 * EFFORT, marks=pytest.mark.long)])
def test_a_column_holds_of_each_value_what_the_model_says(tmp_path: Path, histories: int) -> None:
    for seed in range(histories):
        scans = random_scans(seed)
        with open_warehouse(tmp_path) as warehouse:
            try:
                load(warehouse, scans)
            except Exception as error:
                raise AssertionError(f"seed {seed}: {scans}") from error


def columns_of(warehouse: Warehouse, field: str) -> dict[str, str]:
    """Return the types of the columns that a field became."""
    types = warehouse.types()
    return {name: types[name] for name in types if name.split("__")[0] == field}


def values_of(warehouse: Warehouse, field: str) -> list[dict[str, Any]]:
    """Return of each current row the columns that a field became, and what they did not take."""
    names = columns_of(warehouse, field)
    found = []
    for row in warehouse.current():
        extra = json.loads(row["_extra"] or "{}")
        left = {"_extra": extra[field]} if field in extra else {}
        found.append({name: row[name] for name in names} | left)
    return found


@pytest.mark.long
@pytest.mark.parametrize("first", POOLS)
def test_what_a_column_takes_ends_the_same_in_one_scan_and_in_two(
    tmp_path: Path, first: str
) -> None:
    """A kind of value beside and after each other one, each in a field of its own."""
    before = POOLS[first][0]
    afters = {f"a{number}": pool[-1] for number, pool in enumerate(POOLS.values())}
    befores = dict.fromkeys(afters, before)
    with open_warehouse(tmp_path) as two, open_warehouse(tmp_path) as one:
        load(two, [[befores], [befores, afters]])
        load(one, [[befores, afters]])
        for field, after in afters.items():
            rows = values_of(two, field)
            takes = not any("_extra" in row for row in rows) and first != "spellings"
            if takes and field in one.types():
                about = (before, after)
                assert columns_of(two, field) == columns_of(one, field), about
                assert values_of(one, field) == rows, about
