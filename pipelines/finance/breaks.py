"""Breaks of the published books: list them, and record what people decide about them.

People decide by command, or in a workbook of breaks that is written and read back here.
"""

from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa

from pipelines.core.errors import ConfigurationError
from pipelines.core.files import storing, write_durably
from pipelines.core.text import counted, printable
from pipelines.finance import unread
from pipelines.finance.decisions_file import read_rows, says
from pipelines.finance.doubt import Doubt
from pipelines.finance.materiality import create_break_order
from pipelines.finance.reconciled import open_reconciled, read_age
from pipelines.load.records import EXACT
from pipelines.metadata.decisions import add_decision
from pipelines.versions.export_table import list_tables
from pipelines.versions.export_xlsx import write_workbook
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row, fetch_rows

UNKNOWN: Final = "unknown_partner"
KINDS: Final = ("assign", "resolve", "reopen")
EMPTY: Final = ["decision", "owner", "reason"]
COLUMNS: Final = ["break_id", "difference", "rows", *EMPTY]
CREATE_SHEET: Final = """
CREATE TABLE breaks AS
SELECT
    listed.* EXCLUDE (owner, reason, resolved_by, gone_at, rows_digest, since),
    listed.owner AS assigned_to, listed.reason AS last_reason, NULL::VARCHAR AS decision,
    NULL::VARCHAR AS owner, NULL::VARCHAR AS reason
FROM listed
"""
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
# Differences that are no breaks. NULL: there is none in a partner's month; what cancels is 0.
COVERED: Final = """
SELECT
    months.currency, coalesce(sum(months.tolerated), 0) AS tolerated,
    coalesce(sum(months.rounding), 0) AS rounding, count(*) AS partner_months
FROM reconciliation.summary AS months
WHERE coalesce(months.tolerated, months.rounding) IS NOT NULL
    AND $partner IN ('', months.partner, months.partner_name)
    AND $month IN ('', strftime(months.month, '%Y-%m'))
GROUP BY months.currency
ORDER BY months.currency
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


class BreakDecision(NamedTuple):
    """What a person decides about a break: one of KINDS. Only `assign` has an owner."""

    decision: str
    new_reason: str
    new_owner: str = ""

    def problem(self, row: Row) -> str:
        """Return why this cannot be decided about a break; empty if it can."""
        if self.decision not in KINDS:
            return f"unknown decision `{printable(self.decision)}`, use {', '.join(KINDS)}"
        if not self.new_reason.strip():
            return "it has no reason"
        has_owner = bool(self.new_owner.strip())
        if self.decision == "assign" and not has_owner:
            return "it has no owner"
        if self.decision != "assign" and has_owner:
            return f"{self.decision} takes no owner"
        if not self._fits(row):
            return f"the break is {row['state']}, so no {self.decision}"
        return ""

    def _fits(self, row: Row) -> bool:
        """Return whether a break is in a state that this would change."""
        is_resolved = row["state"] == "resolved"
        if self.decision == "reopen":
            # One that is gone is resolved by evidence, and no person can reopen it.
            return is_resolved and row["gone_at"] is None
        return not is_resolved


def read_breaks(session: Stores, chosen: BreakFilter, *, with_resolved: bool = False) -> pa.Table:
    """Return breaks, most severe first, then by the size of the difference.

    Resolved ones are among them only where a state or a break is chosen, or `with_resolved`. Raises
    ConfigurationError for an unknown value or without breaks, PartnerSyncError.
    """
    bound = chosen._asdict()
    with open_reconciled(session, "breaks", bound) as (_version, db):
        return _read_breaks(db, bound, with_resolved=with_resolved)


def list_breaks(session: Stores, chosen: BreakFilter) -> BreakList:
    """Return breaks as `read_breaks` does, with what else the same books say of them."""
    bound = chosen._asdict()
    with open_reconciled(session, "breaks", bound) as (_version, db):
        return BreakList(
            breaks=_read_breaks(db, bound, with_resolved=False),
            covered=_read_beside(db, COVERED, {"partner": chosen.partner, "month": chosen.month}),
            materiality=_read_beside(db, MATERIALITY, {}),
            small_breaks=_read_beside(db, SMALL_BREAKS, {"partner": chosen.partner}),
            doubts=[*read_age(session), *unread.read_doubts(db)],
            notes=unread.notes_of(unread.read_not_evaluated(db)),
        )


def _read_breaks(
    db: duckdb.DuckDBPyConnection, bound: dict[str, str], *, with_resolved: bool
) -> pa.Table:
    create_break_order(db)
    return db.execute(BREAKS, bound | {"resolved": with_resolved}).to_arrow_table()


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


def choose_breaks(session: Stores, chosen: BreakFilter, decision: BreakDecision) -> list[Row]:
    """Return the breaks for which a decision makes sense, each with it.

    Raises ConfigurationError where there is no such break.
    """
    if not any(chosen):
        raise ConfigurationError("No break and no filter is given. Nothing was changed.")
    breaks = read_breaks(session, chosen, with_resolved=True).to_pylist()
    fitting = []
    problems = set()
    for row in breaks:
        problem = decision.problem(row)
        if problem:
            problems.add(problem)
        else:
            fitting.append(row | decision._asdict())
    if not fitting:
        raise ConfigurationError(
            f"{len(breaks):,} breaks match {chosen}; there is none to {decision.decision}: "
            f"{'; '.join(sorted(problems))}. Nothing was changed.",
            "Run `partner-sync breaks` to see breaks with their states.",
        )
    return fitting


def record_decisions(session: Stores, decided: list[Row]) -> str:
    """Record decisions about breaks in one transaction; return what was done, as a sentence."""
    with session.metadata.transaction() as db:
        for row in decided:
            kind = f"break_{row['decision']}"
            difference = row["difference"]
            decision = session.decision(kind, row["break_id"], row["new_reason"])
            decision.details = {
                "owner": row["new_owner"] or None,
                "difference": None if difference is None else f"{difference:f}",
                "rows": row["rows"],
                "rows_digest": row["rows_digest"],
                "since": row["since"].isoformat(),
            }
            add_decision(db, decision)
    return f"Recorded {counted(len(decided), 'decision')}."


def write_file(breaks: pa.Table, file: Path) -> list[str]:
    """Write breaks to a new workbook; return the columns in which numbers are text.

    Raises ConfigurationError where the file exists, StorageFailed.
    """
    if file.exists():
        raise ConfigurationError(
            f"{file} exists already, perhaps with decisions. It is left as it is.",
            "Name a file that does not exist.",
        )
    part = file.with_name(f".{file.name}.part")
    try:
        with storing(file, "the command again"), duckdb.connect() as sheet:
            sheet.register("listed", breaks)
            sheet.execute(CREATE_SHEET)
            (table,) = list_tables(sheet)
            rounded = write_workbook(table, part)
            write_durably(file, part.read_bytes())
    finally:
        part.unlink(missing_ok=True)
    return rounded


def read_decisions(session: Stores, file: Path) -> list[Row]:
    """Return the breaks that a workbook or CSV file decides about, each with its decision.

    Raises ConfigurationError if a row is wrong.
    """
    breaks = read_breaks(session, BreakFilter(), with_resolved=True).to_pylist()
    known = {row["break_id"]: row for row in breaks}
    decided: dict[str, Row] = {}
    problems = []
    for number, cells in enumerate(read_rows(file, COLUMNS), start=2):
        if not any(cells[name] for name in EMPTY):
            continue
        break_id = cells["break_id"]
        decision = BreakDecision(cells["decision"].lower(), cells["reason"], cells["owner"])
        problem = _problem(known.get(break_id), cells, decision)
        if break_id in decided:
            problem = f"break `{break_id}` is in the file twice"
        if problem:
            problems.append(f"Row {number}: {problem}.")
        else:
            decided[break_id] = known[break_id] | decision._asdict()
    if problems or not decided:
        why = "no row has a decision."
        if problems:
            why = f"{counted(len(problems), 'row')} wrong. {' '.join(problems)}"
        raise ConfigurationError(
            f"Nothing of {file} was recorded: {why}",
            "Correct the file, or write a new one with `partner-sync breaks --xlsx FILE`.",
        )
    return list(decided.values())


def _problem(row: Row | None, cells: dict[Any, Any], decision: BreakDecision) -> str:
    """Return why a row of a file cannot be taken over; empty if it can."""
    if row is None:
        return f"unknown break `{printable(cells['break_id'], 40)}`"
    for name in ("difference", "rows"):
        then = cells[name]
        now = row[name]
        if not says(then, now):
            return f"{name} was `{printable(then, 40)}` in the file and is {now} now"
    return decision.problem(row)
