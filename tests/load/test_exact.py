"""Whatever the records are, the tables hold every value exactly, or a record is in quarantine."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.effort import EFFORT
from tests.load.scans import Reading, open_warehouse
from tests.truth import current, sent

# Names of SQL, of our own columns and aliases, names that become equal, and odd characters.
HOSTILE = ["a", "b", "Id", "id_", "ID", "é", "a__b", "a b", "a-b", "a.b", "A__B", "aB", "a_b", ""]
HOSTILE += ["_extra", "_key", "_digest", "_index", "_parent_key", "_position", "_valid_to", "_page"]
HOSTILE += ["rowid", "idx", "select", "count", "a__count", "a__offset", "history", "added"]
HOSTILE += ["staged", "_connection", "as_of", "stays", "time", "1", 'a"b']
HOSTILE += ["$.a", "[*]", "%s", "{a}", "\x00", "\x1b[2J", "\u202e", "\N{GRINNING FACE}", "x" * 200]
HOSTILE += ["x" * 199 + "y"]
NAMES = st.sampled_from(HOSTILE[:9]) | st.sampled_from(HOSTILE)
NUMBERS = (
    st.integers(-(10**20), 10**20)
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9)
    | st.sampled_from([Decimal("1E+2"), Decimal("0.10"), 10**40, 2**63 - 1, -(2**63)])
)
ALL_NAMES = [{name: f"{at} {turn}" for at, name in enumerate(HOSTILE)} for turn in range(2)]
COLUMNS = "SELECT lower(c.column_name) FROM meta.columns AS c WHERE c.table_name = 'usage'"
AS_OF = "SELECT v._key FROM history.usage_as_of(TIMESTAMPTZ '2026-12-01') AS v ORDER BY ALL"
TEXTS = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(
    [
        *["1.5", "-20.25", "007.5", "7", "2026-11-01", "0000-01-01", "null", "[]"],
        *["2026-11-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-11-01T10:00:00.5+05:30"],
        "9999-12-31T23:59:59Z",
    ]
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=5)


def raw(value: Any) -> str:
    """Write JSON with numbers exactly as they are."""
    if isinstance(value, dict):
        members = (f"{json.dumps(name)}: {raw(each)}" for name, each in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(raw, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("examples", [3, pytest.param(30 * EFFORT, marks=pytest.mark.long)])
def test_every_value_of_any_record_is_in_the_tables(
    tmp_path_factory: pytest.TempPathFactory, examples: int
) -> None:
    @given(scans=st.lists(RECORDS, min_size=1, max_size=4))
    @example([[{"a": 1}], [{"a": Decimal("1.5")}], [{"a": 10**40}, {"a": "1.5"}, {"a": [1, "x"]}]])
    @example([[{"a": [{"b": 1}, None, 5, {}]}], [{"a": []}, {"a": None}, {"a": {"b": 2}}]])
    @example([[{"a": Decimal("-1.9579998726135405637196277E-18")}, {"a": 0}]])
    @example([[{"a": {"a__b": 1}, "a__b": 2, "_extra": "x"}], [{"a": "text", "_extra": {"a": 1}}]])
    @example([[{"a": [[1], {"b": None}]}, {"a": [None, {"b": []}]}], [{"a": [{}]}, {"a": [[]]}]])
    @example([ALL_NAMES[:1], ALL_NAMES[1:]])
    @settings(max_examples=examples)
    def check(scans: list[list[dict[str, Any]]]) -> None:
        """Load scans one after the other; after each, the tables hold what it has."""
        with open_warehouse(tmp_path_factory.mktemp("scans")) as warehouse:
            for records in scans:
                made = [{"id": f"k{at}", **each} for at, each in enumerate(records)]
                result = warehouse.load(Reading([*map(raw, made)], page_size=3))
                assert result.quarantined == 0
                assert current(warehouse.db, "usage") == sent(made, "id")
                assert warehouse.rows(AS_OF) == [(each["id"],) for each in made]
                names = [name for (name,) in warehouse.rows(COLUMNS)]
                assert len(set(names)) == len(names)
                assert not [name for name in names if name.startswith("_") or len(name) > 63]

    check()
