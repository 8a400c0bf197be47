"""History against a model in plain Python, over several scans of one list."""

import json
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import EFFORT
from tests.load.model import Model, Scan, Version
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
FILLER = {"n": 0, "t": "text", "l": [0]}
CONTENTS = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(0, 2),
        "t": st.sampled_from(["", "x", "null"]),
        "l": st.none() | st.lists(st.integers(0, 2), max_size=2),
    }
)
KEYS = st.sampled_from("abcde")
SCANS = st.builds(
    Scan,
    records=st.dictionaries(KEYS, CONTENTS, max_size=5),
    unusable=st.lists(st.none() | st.sampled_from("abf"), max_size=1),
    complete=st.booleans(),
)


def written(key: str, content: Any, spelling: random.Random) -> str:
    """Write a record; the same content is not always the same bytes."""
    items = None if content["l"] is None else [{"x": x} for x in content["l"]]
    members = [("id", key), ("n", content["n"]), ("o", {"t": content["t"]}), ("l", items)]
    if spelling.random() < 0.3:
        spelling.shuffle(members)
    return json.dumps(dict(members), indent=1 if spelling.random() < 0.1 else None)


def unusable(key: str | None) -> str:
    return '{"id": null}' if key is None else f'{{"id": "{key}", "n": NaN}}'


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


def check_history(folder: Path, scans: list[Scan], minutes: list[int]) -> None:
    """Load scans, some of which ended before the one loaded before, and compare with the model."""
    spelling, model = random.Random(len(scans)), Model()
    with open_warehouse(folder) as warehouse:
        first = Scan({"z": FILLER})  # gives every column its type
        for scan, minute in zip([first, *scans], [0, *minutes], strict=False):
            records = {k: v for k, v in scan.records.items() if k not in scan.unusable}
            ended_at = START + timedelta(minutes=minute)
            model.load(Scan(records, scan.unusable, scan.complete, ended_at))
            raws = [written(key, each, spelling) for key, each in records.items()]
            raws += map(unusable, scan.unusable)
            spelling.shuffle(raws)
            reading = Reading(raws, complete=scan.complete, ended_at=ended_at, page_size=2)
            result = warehouse.load(reading)
            assert result.quarantined == len(scan.unusable)
            assert result.new + result.changed + result.unchanged == len(records)
            assert len(warehouse.rows("SELECT 1 FROM current.usage")) == len(model.open)
        assert stored(warehouse) == model.versions()
        time = model.last
        as_of = "SELECT v._key FROM history.usage_as_of($1::TIMESTAMPTZ) AS v ORDER BY ALL"
        assert [key for (key,) in warehouse.db.execute(as_of, [time]).fetchall()] == sorted(
            model.open
        )


MINUTES = st.lists(st.integers(1, 9), min_size=4, max_size=4)


@given(scans=st.lists(SCANS, min_size=2, max_size=4), minutes=MINUTES)
@settings(max_examples=4)
def test_history_is_that_of_the_model(
    tmp_path_factory: pytest.TempPathFactory, scans: list[Scan], minutes: list[int]
) -> None:
    check_history(tmp_path_factory.mktemp("scans"), scans, minutes)


@pytest.mark.long
@given(scans=st.lists(SCANS, min_size=2, max_size=4), minutes=MINUTES)
@settings(max_examples=40 * EFFORT)
def test_long_histories_are_those_of_the_model(
    tmp_path_factory: pytest.TempPathFactory, scans: list[Scan], minutes: list[int]
) -> None:
    check_history(tmp_path_factory.mktemp("scans"), scans, minutes)
