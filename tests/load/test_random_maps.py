"""Random histories of an object whose names are data, against the model of what a column holds."""

import json
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines.load.older import read_older_rows
from tests.effort import EFFORT
from tests.load.scans import Warehouse, open_warehouse
from tests.load.test_kinds_of_values import BITS, EXACT, NUMBER, POOLS, cell, moment, spelled

Sent = dict[tuple[str, int], dict[str, str]]
"""Raw values by name, of a key and the number of its row version."""
ROWS = """
WITH versions AS (
    SELECT
        history._connection, history._key, history._valid_from, history._valid_to,
        row_number() OVER (PARTITION BY history._key ORDER BY history._valid_from) AS number
    FROM history.usage AS history
)
SELECT versions._key, versions.number, items._index, items._name, items.value, items._extra
FROM history.usage__m AS items
JOIN versions
    ON (versions._connection, versions._key, versions._valid_from)
    = (items._connection, items._parent_key, items._valid_from)
    AND versions._valid_to IS NOT DISTINCT FROM items._valid_to
ORDER BY ALL
"""
STRUCTURES = {"object", "list"}


def meaning(value: Any) -> str:
    """Return a value so that spellings of one number, time or truth value are equal.

    What was in columns of several types has the spelling of its column.
    """
    text = json.dumps(value) if isinstance(value, bool) else str(value)
    if text in BITS:
        return str(int(BITS[text]))
    if NUMBER.fullmatch(text):
        return str(Decimal(text).normalize(EXACT) + 0)
    at, _ = moment(text)
    return at.isoformat() if at else text


def check(warehouse: Warehouse, sent: Sent) -> None:
    """Require a row for each name of every row version, in the order of names, with its value."""
    kind = warehouse.types("usage__m")["value"]
    expected = [
        (*at, index, name, raw)
        for at, values in sorted(sent.items())
        for index, (name, raw) in enumerate(sorted(values.items()))
    ]
    found = warehouse.rows(ROWS)
    assert [row[:4] for row in found] == [row[:4] for row in expected]
    for (*_, value, extra), (*_, raw) in zip(found, expected, strict=True):
        held, is_exact = cell(kind, raw)
        left = json.loads(extra or "{}").get("value")
        about = (kind, raw, value, left)
        if held is None or not is_exact:
            assert value == held, about
            assert meaning(left) == meaning(spelled(raw)), about
        else:
            assert left is None, about
            same = meaning(value) == meaning(held) if kind == "VARCHAR" else value == held
            assert same, about


def random_scans(seed: int) -> list[list[dict[str, str]]]:
    """Return scans of an object that gets more names, with values of a few kinds."""
    chance = random.Random(seed)
    kinds = [*POOLS.keys() - STRUCTURES - {"nothing"}]
    kinds.sort()
    pool = [
        raw for kind in chance.sample(kinds, chance.choice([1, 1, 2, 3])) for raw in POOLS[kind]
    ]
    size, scans = chance.choice([90, 99, 105]), []
    for _ in range(chance.randint(2, 4)):
        names = [f"n{at:03}" for at in range(size)]
        size += chance.choice([0, 1, 12])
        objects = [{name: chance.choice(pool) for name in names if chance.random() < 0.95}]
        objects.append({name: chance.choice(pool) for name in chance.sample(names, 3)})
        scans.append(objects)
    names = [f"n{at:03}" for at in range(max(size + 1, 110))]  # so that it is a map at last
    scans.append([{name: chance.choice(pool) for name in names}, {}])
    return scans


def load(warehouse: Warehouse, scans: list[list[dict[str, str]]]) -> Sent:
    """Load scans; return what was sent of every row version."""
    sent = Sent()
    for scan in scans:
        objects = [",".join(f'"{name}":{raw}' for name, raw in each.items()) for each in scan]
        warehouse.load([f'{{"id":"k{at}","m":{{{each}}}}}' for at, each in enumerate(objects)])
        stored = Counter(key for (key,) in warehouse.rows("SELECT h._key FROM history.usage AS h"))
        for at, values in enumerate(scan):
            sent.setdefault((f"k{at}", stored[f"k{at}"]), values)
    return sent


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_rows_of_a_map_hold_of_each_value_what_the_model_says(tmp_path: Path) -> None:
    for seed in range(4 * EFFORT):
        scans = random_scans(seed)
        with open_warehouse(tmp_path) as warehouse:
            try:
                sent = load(warehouse, scans)
                check(warehouse, sent)
                warehouse.db.execute("UPDATE meta.columns SET candidates = NULL")
                read_older_rows(warehouse.db, {}, declare=False)
                check(warehouse, sent)
            except Exception as error:
                raise AssertionError(f"seed {seed}") from error
