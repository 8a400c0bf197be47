"""Whatever JSON a service sends is in the tables exactly, or in quarantine with its reason."""

import json
from dataclasses import dataclass
from typing import Any

import duckdb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.clock import SYSTEM
from pipelines.warehouse import registry
from pipelines.warehouse.fold import fold
from pipelines.warehouse.tables import RESERVED
from tests.warehouse.conftest import ANYTHING, Warehouse
from tests.warehouse.walked import Walk, WrongError, sent

# What the JSON text of a value is. Numbers and what is wrong are written as they are.
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6).map(json.dumps)
WRITTEN = st.sampled_from(
    [
        *("null", "true", "false", "0", "-0", "-0.0", "1.50", "1e3", "1E-38", "1e-39", "1e308"),
        *("12345678901234567.89", "99999999999999999999999999999999999999", f"1{'0' * 38}"),
        *('""', '"12.50"', '"007"', '"5"', '"true"', '"null"', '"NaN"', '"1e999"', '"[1]"'),
        *('"2026-11-01T00:00:00Z"', '"2026-02-30T00:00:00Z"', '"2026-11-01"', "[]", "{}"),
        f'"{"7" * 40}.1"',
    ]
)
WRONG = st.sampled_from(
    [
        "NaN",
        "-Infinity",
        "1e999",
        '"\\ud800"',
        '{"a": 1, "a": 1}',
        '{"\\udfff": 1}',
        "[" * 70 + "]" * 70,
    ]
)
NUMBERS = st.integers().map(str) | st.decimals(allow_nan=False, allow_infinity=False).map(str)
KEYS = st.sampled_from(
    [
        "a",
        "b",
        "A",
        "a__b",
        "value",
        "misfit",
        "idx",
        "",
        "x" * 70,
        'q"',
        "\u0000",
        "_rest_",
        *RESERVED,
    ]
) | st.text(st.characters(codec="utf-8"), max_size=3)


def _object(members: dict[str, str]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {text}" for name, text in members.items()) + "}"


VALUES = st.recursive(
    WRITTEN | NUMBERS | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(KEYS, inner, max_size=3).map(_object)
    ),
    max_leaves=8,
)
RECORDS = st.dictionaries(KEYS, VALUES, max_size=4)
PAGES = st.lists(RECORDS, min_size=1, max_size=3)
NIGHTS = st.lists(st.lists(PAGES, min_size=1, max_size=2), min_size=1, max_size=3)


@dataclass
class Landing:
    """A work database in memory for each example, and one archive for all."""

    warehouse: Warehouse
    database: duckdb.DuckDBPyConnection
    stream: str = "things"

    def night(self, pages: list[list[str]]) -> int:
        """Land a night's pages; compare every record with the tables, return how many values."""
        texts = [f"[{', '.join(page)}]" for page in pages]
        manifest, stream = self.warehouse.manifest(*texts), self.stream
        fold(self.database, self.warehouse.archive, manifest, ANYTHING, SYSTEM)
        known = registry.registered(self.database, stream)
        assert known is not None
        walk = Walk(self.database, stream, known.names)
        aside = self.database.execute(
            f"SELECT _page, _row, reason FROM quarantine.{stream}"
        ).fetchall()
        reasons = {(page, row): reason for page, row, reason in aside}
        for linked, page in zip(manifest.pages, pages, strict=True):
            for row, text in enumerate(page):
                reason = reasons.pop((linked.sha256, row), None)
                try:
                    value = sent(text)
                except WrongError:
                    assert reason
                    continue
                assert reason is None or "more deeply" in reason
                if reason is None:
                    walk.record(value)
        assert not reasons
        return walk.compared


def numbered(pages: list[list[dict[str, str]]], wrong: str | None) -> list[list[str]]:
    """Give every record of a night its key; one more has what is wrong."""
    texts: list[list[str]] = []
    number = 0
    for page in pages:
        texts.append([])
        for record in page:
            number += 1
            texts[-1].append(_object(record | {"id": str(number)}))
    if wrong is not None:
        texts[-1].append(_object({"id": "0", "wrong": wrong}))
    return texts


@given(nights=NIGHTS, wrong=st.none() | WRONG)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_is_landed_exactly_or_set_aside(
    warehouse: Warehouse, nights: list[Any], wrong: str | None
) -> None:
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute("SET TimeZone = 'UTC'")
        landing = Landing(warehouse, database)
        for night in nights:
            assert landing.night(numbered(night, wrong)) > 0
