"""History against a model in plain Python, over several scans of one list."""

import json
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import EFFORT
from tests.load.scans import START, Reading, Warehouse, open_warehouse

VERSIONS = """
SELECT
    usage._key, usage.n, usage.o__t, usage.l__count, usage._valid_from, usage._valid_to,
    usage._end_reason
FROM history.usage AS usage
ORDER BY usage._key, usage._valid_from
"""
ITEMS = """
SELECT items._parent_key, items._valid_from, items._valid_to, list(items.x ORDER BY items._index)
FROM history.usage__l AS items
GROUP BY ALL
"""
HISTORY = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'history'"
AS_OF = "SELECT usage._key FROM history.usage_as_of($1::TIMESTAMPTZ) AS usage ORDER BY ALL"
FILLER = {"n": 0, "t": "text", "l": [0]}


class Version(NamedTuple):
    """One version of a row."""

    key: str
    content: Any
    valid_from: datetime
    valid_to: datetime | None = None
    end_reason: str | None = None


class Scan(NamedTuple):
    """What a scan has: usable records by key, keys of unusable ones (None: no readable key)."""

    records: Mapping[str, Any]
    unusable: Sequence[str | None] = ()
    complete: bool = True


CONTENTS = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(0, 2),
        "t": st.sampled_from(["", "x", "null"]),
        "l": st.none() | st.lists(st.integers(0, 2), max_size=2),
    }
)
SCANS = st.builds(
    Scan,
    records=st.dictionaries(st.sampled_from("abcde"), CONTENTS, max_size=5),
    unusable=st.lists(st.none() | st.sampled_from("abf"), max_size=1),
    complete=st.booleans(),
)
MINUTES = st.lists(st.integers(1, 9), min_size=4, max_size=4)


def apply(scan: Scan, time: datetime, versions: list[Version]) -> list[Version]:
    """Return the versions after a scan: what the tables should hold. Shares no code with load."""
    held = {each.key: each for each in versions if each.valid_to is None}
    ends = scan.complete and None not in scan.unusable
    found = [each for each in versions if each.valid_to is not None]
    for key, each in held.items():
        content = scan.records.get(key, None if ends else each.content)
        kept = content == each.content or key in scan.unusable
        reason = "changed" if key in scan.records else "deleted"
        found.append(each if kept else each._replace(valid_to=time, end_reason=reason))
    same = {each.key for each in found if each.valid_to is None}
    found += [Version(key, each, time) for key, each in scan.records.items() if key not in same]
    return sorted(found, key=lambda each: (each.key, each.valid_from))


def written(key: str, content: Any, spelling: random.Random) -> str:
    """Write a record; the same content is not always the same bytes."""
    items = None if content["l"] is None else [{"x": x} for x in content["l"]]
    members = [("id", key), ("n", content["n"]), ("o", {"t": content["t"]}), ("l", items)]
    if spelling.random() < 0.3:
        spelling.shuffle(members)
    return json.dumps(dict(members), indent=1 if spelling.random() < 0.1 else None)


def stored(warehouse: Warehouse) -> list[Version]:
    """Return the versions in the tables."""
    items = {(key, begin, end): found for key, begin, end, found in warehouse.rows(ITEMS)}
    return [
        Version(
            key,
            {"n": n, "t": t, "l": None if count is None else items.get((key, begin, end), [])},
            begin,
            end,
            reason,
        )
        for key, n, t, count, begin, end, reason in warehouse.rows(VERSIONS)
    ]


def content(warehouse: Warehouse) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of every table of history."""
    names = [str(name) for (name,) in warehouse.rows(HISTORY)]
    return {name: sorted(warehouse.rows(f"FROM history.{name}"), key=repr) for name in names}


def check_history(warehouse: Warehouse, scans: list[Scan], minutes: list[int]) -> None:
    """Load scans, some of which ended before the one loaded before, and compare with the model."""
    spelling, time = random.Random(len(scans)), datetime(1, 1, 1, tzinfo=UTC)
    versions: list[Version] = []
    first = Scan({"z": FILLER})  # gives every column its type
    for scan, minute in zip([first, *scans], [0, *minutes], strict=False):
        records = {k: v for k, v in scan.records.items() if k not in scan.unusable}
        ended_at = START + timedelta(minutes=minute)
        time = max(ended_at, time + timedelta(microseconds=1))
        versions = apply(scan._replace(records=records), time, versions)
        raws = [written(key, each, spelling) for key, each in records.items()]
        raws += [json.dumps({"id": key, "n": float("nan")}) for key in scan.unusable]
        spelling.shuffle(raws)
        before = content(warehouse)
        result = warehouse.load(
            Reading(raws, complete=scan.complete, ended_at=ended_at, page_size=2)
        )
        changed = {name for name, rows in content(warehouse).items() if before.get(name) != rows}
        assert changed <= {*result.tables}  # a build compares only these with what it wrote
        assert result.quarantined == len(scan.unusable)
        assert result.new + result.changed + result.unchanged == len(records)
        held = [each.key for each in versions if each.valid_to is None]
        assert len(warehouse.rows("SELECT 1 FROM current.usage")) == len(held)
    assert stored(warehouse) == versions
    assert warehouse.db.execute(AS_OF, [time]).fetchall() == [(key,) for key in held]
    assert warehouse.db.execute(AS_OF, [START - timedelta(minutes=1)]).fetchall() == []


@pytest.mark.parametrize("examples", [4, pytest.param(20 * EFFORT, marks=pytest.mark.long)])
def test_history_is_that_of_the_model(
    tmp_path_factory: pytest.TempPathFactory, examples: int
) -> None:
    @given(scans=st.lists(SCANS, min_size=2, max_size=4), minutes=MINUTES)
    @settings(max_examples=examples)
    def check(scans: list[Scan], minutes: list[int]) -> None:
        with open_warehouse(tmp_path_factory.mktemp("scans")) as warehouse:
            check_history(warehouse, scans, minutes)

    check()
