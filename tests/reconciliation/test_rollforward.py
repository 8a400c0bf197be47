"""The roll-forward foots, whatever happened to the records: a property, over any history."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.reconciliation import RULES
from pipelines.warehouse.database import fill
from tests.reconciliation.examples import filled, laid_out_empty

RULE = next(rule for rule in RULES if rule.name == "partner_rollforward")
BEGIN = datetime(2026, 1, 1, 2, tzinfo=UTC)
END = "SELECT sum(closing), max(abs(difference)) FROM f WHERE difference IS NOT NULL"
CHAINED = """
SELECT count(*) FROM (
    SELECT opening - lag(closing, 1, 0) OVER (
        PARTITION BY partner, currency ORDER BY month
    ) AS gap FROM f
) WHERE gap <> 0
"""
Version = dict[str, Any]
amounts = st.decimals(-1000, 1000, places=2)


@st.composite
def histories(draw: st.DrawFn) -> list[Version]:
    """Return every version of some records: changed, restated, moved to others, gone, back."""
    rows = []
    for number in range(draw(st.integers(0, 6))):
        days = sorted(draw(st.sets(st.integers(0, 200), min_size=1, max_size=4)))
        moments = [BEGIN + timedelta(days=day) for day in days]
        last = draw(st.sampled_from(["there", "missing", "gone"]))
        ends = [*moments[1:], moments[-1] + timedelta(days=1) if last == "gone" else None]
        for begin, end in zip(moments, ends, strict=True):
            rows.append(
                {
                    "connection": "default",
                    "id": f"r{number}",
                    "partner": draw(st.sampled_from(["P", "Q"])),
                    "currency": draw(st.sampled_from(["EUR", "JPY"])),
                    "month": date(2026, draw(st.integers(1, 6)), 1),
                    "amount": draw(amounts),
                    "valid_from": begin,
                    "valid_to": end,
                    "why": None if end is None else "missing" if end == ends[-1] else "restated",
                    "missing_since": begin if end is None and last == "missing" else None,
                }
            )
    return rows


@settings(max_examples=40)
@given(histories(), histories())
def test_it_foots_whatever_happened(used: list[Version], bills: list[Version]) -> None:
    database, billed = _empty(), [{**row, "bill": row["id"]} for row in bills]
    rows = {"used_versions": used, "bill_versions": billed}
    rows |= {"used": _now(used), "bills": _now(billed)}
    for table, some in rows.items():
        columns = database.table(table).columns
        database.execute(f"DELETE FROM {table}")
        fill(database, table, [[row.get(name) for name in columns] for row in some])
    database.execute(f"CREATE OR REPLACE TEMP TABLE f AS {RULE.sql}")
    closing, difference = database.execute(END).fetchall()[0]
    gaps = database.execute(CHAINED).fetchall()
    assert not difference
    assert gaps == [(0,)]
    assert (closing or 0) == _open(used) - _open(bills)


@cache
def _empty() -> duckdb.DuckDBPyConnection:
    """Return two sides without a row, made once for all histories."""
    database = duckdb.connect()
    laid_out_empty(database)
    for table in ("used", "bills", "used_versions", "bill_versions"):
        filled(database, table, [])
    return database


def _now(rows: Sequence[Version]) -> list[Version]:
    """Return what the tables of today show: open versions that are not missing."""
    return [row for row in rows if row["valid_to"] is None and row["missing_since"] is None]


def _open(rows: Sequence[Version]) -> Decimal:
    return sum((row["amount"] for row in rows if row["valid_to"] is None), Decimal(0))
