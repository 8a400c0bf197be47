"""Here: breaks of the published books, with what else these books say of them.

Not here: what a person decides about a break (break_decisions), the workbook of breaks
(decisions_file), breaks on the page (finance.reports).
"""

from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from typing import Final, NamedTuple

import duckdb
import pyarrow as pa

from pipelines.core.parse import EXACT
from pipelines.core.text import printable
from pipelines.finance import unread
from pipelines.finance.doubt import Doubt
from pipelines.finance.materiality import create_break_order
from pipelines.finance.reconciled import open_reconciled, read_age
from pipelines.finance.reports.queries import read_query
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row, fetch_rows

UNKNOWN: Final = "unknown_partner"
BREAKS: Final = """
SELECT
    breaks.break_id, breaks.severity, breaks.rule, breaks.connection, breaks.partner,
    breaks.partner_name, strftime(breaks.month, '%Y-%m') AS month, breaks.currency,
    breaks.used_amount, breaks.billed_amount, breaks.own_amount, breaks.difference,
    places.materiality, breaks.rows, breaks.cause, breaks.subject, breaks.age_days,
    breaks.first_seen, breaks.state, breaks.owner, breaks.resolved_by, breaks.reason,
    breaks.uncertain, breaks.doubt, breaks.gone_at, breaks.own_source, breaks.rows_digest,
    coalesce(breaks.returned_at, breaks.first_seen) AS since
FROM reconciliation.breaks AS breaks
JOIN break_order AS places USING (break_id)
WHERE $rule IN ('', breaks.rule)
    AND $partner IN ('', breaks.partner, breaks.partner_name)
    AND $month IN ('', strftime(breaks.month, '%Y-%m'))
    AND $severity IN ('', breaks.severity)
    AND $state IN ('', breaks.state)
    AND $break_id IN ('', breaks.break_id)
    AND (breaks.state <> 'resolved' OR concat($state, $break_id) <> '' OR $resolved)
ORDER BY places.place
"""
MATERIALITY: Final = """
SELECT material.currency, material.amount, material.source
FROM reconciliation.materiality AS material
ORDER BY material.currency
"""
SMALL_BREAKS: Final = """
SELECT small.*
FROM reconciliation.small_breaks AS small
WHERE $partner IN ('', small.partner, small.partner_name)
ORDER BY abs(small.difference) / small.materiality DESC, small.currency, small.partner
"""


class BreakFilter(NamedTuple):
    """Which breaks; empty: all. `partner` is an identifier or a name, `month` is as 2026-09."""

    rule: str = ""
    partner: str = ""
    month: str = ""
    severity: str = ""
    state: str = ""
    break_id: str = ""

    def __str__(self) -> str:
        given = {name: value for name, value in self._asdict().items() if value}
        return ", ".join(f"{name}={printable(value)}" for name, value in given.items())


class BreakList(NamedTuple):
    """Breaks, and what tolerance and rounding cover in the months of a choice, by currency.

    `materiality` has the amount of each currency from which on a break is high. `small_breaks` are
    sums of smaller ones that reach it, by partner and currency. `doubts` say why nobody can say
    that there are no other breaks; `notes` are of less weight.
    """

    breaks: pa.Table
    covered: list[Row]
    materiality: list[Row]
    small_breaks: list[Row]
    doubts: list[Doubt]
    notes: list[Doubt]


def read_breaks(stores: Stores, chosen: BreakFilter) -> pa.Table:
    """Return breaks, also resolved ones: most severe first, then by the size of the difference.

    Raises ConfigurationError for an unknown value or without breaks, PartnerSyncError.
    """
    bound = chosen._asdict()
    with open_reconciled(stores, "breaks", bound) as (_version, db):
        return _read_breaks(db, bound, with_resolved=True)


def list_breaks(stores: Stores, chosen: BreakFilter) -> BreakList:
    """Return breaks with what else the same books say of them.

    Resolved ones are among them only where a state or a break is chosen. Raises as `read_breaks`
    does.
    """
    bound = chosen._asdict()
    with open_reconciled(stores, "breaks", bound) as (_version, db):
        return BreakList(
            breaks=_read_breaks(db, bound, with_resolved=False),
            covered=_read_covered(db, chosen),
            materiality=_read_beside(db, MATERIALITY, {}),
            small_breaks=_read_beside(db, SMALL_BREAKS, {"partner": chosen.partner}),
            doubts=[*read_age(stores), *unread.read_doubts(db)],
            notes=unread.notes_of(unread.read_not_evaluated(db)),
        )


def _read_breaks(
    db: duckdb.DuckDBPyConnection, bound: dict[str, str], *, with_resolved: bool
) -> pa.Table:
    create_break_order(db)
    return db.execute(BREAKS, bound | {"resolved": with_resolved}).to_arrow_table()


def _read_covered(db: duckdb.DuckDBPyConnection, chosen: BreakFilter) -> list[Row]:
    """Return what the report shows of differences that are no breaks, of a partner and month."""
    db.execute("SET VARIABLE partner = $1", [chosen.partner])
    db.execute("SET VARIABLE month = $1", [chosen.month])
    return _read_beside(db, read_query("covered").text, {})


def _read_beside(db: duckdb.DuckDBPyConnection, query: str, bound: dict[str, str]) -> list[Row]:
    """Return what books say beside their breaks; nothing where it is not evaluated."""
    with suppress(duckdb.CatalogException, duckdb.BinderException):  # of an earlier release
        return fetch_rows(db, query, bound)
    return []


def totals(rows: Iterable[Row]) -> list[Row]:
    """Return the sum of the differences by currency; uncertain breaks are in none.

    Breaks of own books are in none, either: their difference is not what is billed minus used.
    `unknown_partners` is the part of it that is in no known partner's difference.
    """
    totals_of: dict[tuple[str, bool], Row] = {}
    for row in rows:
        is_own = row["own_source"] is not None
        if is_own or row["uncertain"] is not None or row["difference"] is None:
            continue
        currency = row["currency"]
        at = (str(currency), currency is None)  # None is no text that sorts among others
        if at not in totals_of:
            unknown = {"breaks": 0, "difference": Decimal(0)}
            totals_of[at] = {
                "currency": currency,
                "breaks": 0,
                "difference": Decimal(0),
                "unknown_partners": unknown,
            }
        total = totals_of[at]
        _add(total, row["difference"])
        if row["rule"] == UNKNOWN:
            _add(total["unknown_partners"], row["difference"])
    return [total for _currency, total in sorted(totals_of.items())]


def _add(total: Row, difference: Decimal) -> None:
    total["breaks"] += 1
    total["difference"] = EXACT.add(total["difference"], difference)
