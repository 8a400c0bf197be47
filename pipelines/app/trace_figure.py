"""Adds figures of the published version up again, from the records that the service sent."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, localcontext
from typing import Any, Final

from pipelines.app.raw_amounts import RawAmounts, Record, read_fields, read_raws
from pipelines.app.reconciled import Reconciled, Row, open_reconciled, require_known, select
from pipelines.app.session import AppSession
from pipelines.app.trace import Place, raw_records, require_file
from pipelines.archive.scan_file import scan_file
from pipelines.core.errors import ArchiveDamaged, ConfigurationError
from pipelines.core.text import printable
from pipelines.load.records import EXACT
from pipelines.publish.reconciliation import is_outdated, read_inputs

PARTS: Final = ["used", "billed", "credited", "not counted"]
BREAK_ROWS: Final = """
SELECT
    if(found.side = 'usage', 'used', 'billed') AS part,
    breaks.connection, breaks.partner, breaks.currency, found.side AS stream, found.id,
    found.amount, found._scan_id AS scan_id, found._page AS page, found._row AS row
FROM reconciliation.break_rows AS found
JOIN reconciliation.breaks AS breaks ON breaks.break_id = found.break_id
WHERE breaks.break_id = $break_id
ORDER BY part DESC, found.id
"""
BREAK_SUMS: Final = """
SELECT
    unnest(['used', 'billed']) AS part, breaks.connection, breaks.partner, breaks.currency,
    unnest([breaks.used_amount, breaks.billed_amount]) AS published
FROM reconciliation.breaks AS breaks
WHERE breaks.break_id = $break_id
"""
CHOSEN: Final = """
WITH chosen AS (
    SELECT summary.*
    FROM reconciliation.summary AS summary
    WHERE $partner IN (summary.partner, summary.partner_name)
        AND strftime(summary.month, '%Y-%m') = $month AND $currency IN ('', summary.currency)
)
"""
MONTH_ROWS: Final = f"""
{CHOSEN}, sides AS (
    SELECT
        'used' AS part, 'usage' AS stream, used.connection, used.partner, used.month,
        used.currency, used.id, used.amount, used._scan_id, used._page, used._row
    FROM reconciliation.used AS used
    UNION ALL
    SELECT
        CASE WHEN billed.apart IS NULL THEN 'billed'
             WHEN billed.apart = 'credit note' THEN 'credited' ELSE 'not counted' END,
        'billing', billed.connection, billed.partner, billed.month,
        billed.currency, billed.id, billed.amount, billed._scan_id, billed._page, billed._row
    FROM reconciliation.billed AS billed
)
SELECT
    sides.part, sides.connection, sides.partner, sides.currency, sides.stream, sides.id,
    sides.amount, sides._scan_id AS scan_id, sides._page AS page, sides._row AS row
FROM sides
SEMI JOIN chosen
    ON chosen.connection = sides.connection AND chosen.partner = sides.partner
    AND chosen.month = sides.month AND chosen.currency IS NOT DISTINCT FROM sides.currency
ORDER BY sides.connection, sides.partner, sides.currency,
    list_position({PARTS}, sides.part), sides.id
"""
MONTH_SUMS: Final = f"""
{CHOSEN}
SELECT
    unnest({PARTS}) AS part, chosen.connection, chosen.partner, chosen.currency,
    unnest([chosen.used_amount, chosen.billed_amount, chosen.credited_amount,
        chosen.not_counted_amount]) AS published
FROM chosen
ORDER BY chosen.connection, chosen.partner, chosen.currency, list_position({PARTS}, part)
"""
_Scan = tuple[str, str, str]
"""Connection, stream and identifier of a scan."""
GROUP: Final = ("connection", "partner", "currency", "part")
OUTDATED: Final = (
    "The mapping, or a decision about breaks, is newer than this version. Run `partner-sync "
    "versions build`, then trace again."
)
NOT_ADDED: Final = (
    "The rows of the version do not add up to the published figure. If records were erased since, "
    "the figure still contains them."
)


def trace_break(session: AppSession, break_id: str) -> Row:
    """Add the amounts of a break up again. Raises as `trace_month`."""
    with open_reconciled(session, "breaks") as opened:
        require_known(opened.db, {"break_id": break_id})
        bound = {"break_id": break_id}
        rows, sums = select(opened.db, BREAK_ROWS, bound), select(opened.db, BREAK_SUMS, bound)
        if not rows:
            raise ConfigurationError(
                f"Version {opened.version.number} has no record of break {break_id}: it is gone, "
                "or its rule was not evaluated."
            )
        return _traced(session, opened, rows, sums)


def trace_month(session: AppSession, partner: str, month: str, currency: str = "") -> Row:
    """Add the figures of a partner (identifier or name) in a month (2026-09) up again.

    Returns the rows of each figure with the amounts in their raw records, and both sums. Raises
    ConfigurationError for what is unknown or not mapped, VersionNotFound, StorageFailed.
    """
    bound = {"partner": partner, "month": month, "currency": currency}
    with open_reconciled(session, "summary") as opened:
        require_known(opened.db, bound)
        rows, sums = select(opened.db, MONTH_ROWS, bound), select(opened.db, MONTH_SUMS, bound)
        if not sums:
            raise ConfigurationError(
                f"{printable(partner)} has neither usage nor bills in {month}"
                f"{f' in {currency}' if currency else ''}, as of version {opened.version.number}."
            )
        return _traced(session, opened, rows, sums)


def _traced(session: AppSession, opened: Reconciled, rows: list[Row], sums: Iterable[Row]) -> Row:
    amounts, scans = read_fields(session, opened), defaultdict[_Scan, list[Row]](list)
    for row in rows:
        scans[row["connection"], row["stream"], row["scan_id"]].append(row)
    with localcontext(EXACT):
        for scan, of_scan in scans.items():
            _read_scan(session, amounts, scan, of_scan)
        compared = [*_compare(rows, sums)]
    is_same = all(each["same"] for each in compared)
    is_old = not is_same and is_outdated(session, opened.version, read_inputs(session))
    found = {"version": opened.version.number, "rows": rows, "sums": compared}
    return found | {"same": is_same, "problem": OUTDATED if is_old else ""}


def _read_scan(session: AppSession, amounts: RawAmounts, scan: _Scan, rows: list[Row]) -> None:
    """Add to rows of one scan file what their raw records say, or why they say nothing."""
    name, records, problem = scan_file(*scan), dict[Place, Record](), ""
    file = session.archive.folder / name
    try:
        require_file(session, file, scan[-1])
        places = {(row["page"], row["row"]) for row in rows}
        records = read_raws(raw_records(file, places))
    except ArchiveDamaged as error:
        problem = str(error)
    for row in rows:
        row |= {"file": name, "from_raw": None, "problem": problem}
        if not problem:
            try:
                row["from_raw"] = amounts.read(row, records.get((row["page"], row["row"])))
            except ValueError as error:
                row["problem"] = str(error)
            else:
                is_same = row["from_raw"] == row["amount"]
                row["problem"] = "" if is_same else "The raw record has another amount."


def _compare(rows: Sequence[Row], sums: Iterable[Row]) -> Iterator[Row]:
    """Yield each published figure with the sum of what the raw records of its rows say."""
    groups = defaultdict[tuple[Any, ...], list[Row]](list)
    for row in rows:
        groups[tuple(row[name] for name in GROUP)].append(row)
    for each in sums:
        found = groups[tuple(each[name] for name in GROUP)]
        amounts = [row["from_raw"] for row in found if row["from_raw"] is not None]
        total = sum(amounts, Decimal(0)) if amounts else None
        wrong = sum(bool(row["problem"]) for row in found)
        problem = f"See {wrong:,} of its {len(found):,} rows." if wrong else ""
        if not wrong and total != each["published"]:
            problem = NOT_ADDED
        if found or each["published"] is not None:
            yield each | {"from_raw": total, "same": not problem, "problem": problem}
