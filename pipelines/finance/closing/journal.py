"""The journal of a closed month: what a ledger posts of usage that is not billed.

Here: how breaks and corrections become entries, with which accounts. Not here: which of them, and
why others do not (unbilled), how an auditor finds out that they follow from the rows (verify).

An entry is of one kind, partner and currency. Usage that is not billed is accrued at the end of
the month, and reversed at the beginning of the next one, whose close accrues it again if it is
still not billed. So each close accrues what is open of all months until its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from pipelines.core.text import counted, quote_text
from pipelines.finance.closing.accrual import WRITTEN
from pipelines.finance.closing.unbilled import find_unbilled
from pipelines.finance.currencies import minor_unit_of
from pipelines.finance.mapping import Accounts, OtherAccounts
from pipelines.finance.reconcile.close_copy import ENTRIES, JOURNAL
from pipelines.finance.reconcile.closed_rows import month_after
from pipelines.finance.reports.text import format_amount
from pipelines.warehouse.duckdb_file import SETTINGS, Row, fetch_rows

NO_ACCOUNTS: Final = "No journal was written: mapping.toml has no [accounts]."
NAMES: Final = ("accrued", "result", "correction", "rounding")
QUERY: Final = """
WITH dated AS (
    SELECT accruable.*, $month AS period, $last_day AS date FROM accruable
    UNION ALL BY NAME
    SELECT accruable.* REPLACE ('reversal' AS kind, -accruable.amount AS amount),
        $next_month AS period, $next_month AS date
    FROM accruable
    WHERE accruable.kind = 'accrual' AND accruable.reason IS NULL
), given AS (
    SELECT
        dated.*, dated.kind = 'correction' AS is_correction,
        coalesce(by_partner.accrued, by_kind.accrued, for_all.accrued) AS accrued,
        coalesce(by_partner.result, by_kind.result, for_all.result) AS result,
        coalesce(by_partner.correction, by_kind.correction, for_all.correction) AS correction,
        coalesce(by_partner.rounding, by_kind.rounding, for_all.rounding) AS rounding
    FROM dated
    CROSS JOIN (FROM accounts WHERE accounts.scope = 'all') AS for_all
    LEFT JOIN (FROM accounts WHERE accounts.scope = 'kind') AS by_kind
        ON by_kind.name = dated.account_kind
    LEFT JOIN (FROM accounts WHERE accounts.scope = 'partner') AS by_partner
        ON by_partner.name = dated.partner
), sources AS (
    SELECT
        concat_ws('-', $close, given.kind, left(sha256(concat_ws(chr(31), given.account_kind,
            given.connection, ifnull(given.partner, chr(30)), ifnull(given.currency, ''))), 12)
        ) AS entry,
        given.kind, strftime(given.month, '%Y-%m') AS month,
        strftime(given.period, '%Y-%m') AS period, strftime(given.date, '%Y-%m-%d') AS date,
        if(given.is_correction, given.correction, given.result) AS account,
        if(given.is_correction, given.result, given.accrued) AS contra, given.rounding,
        given.minor_unit, given.currency, given.connection, given.partner, given.source,
        $close AS close, given.amount, if($is_cost, given.amount, -given.amount) AS signed,
        if(given.reason IS NULL, cut(signed, given.minor_unit), NULL) AS posted,
        given.reason || ifnull(': ' || given.because, '') AS left_out
    FROM given
), lines AS (
    SELECT sources.* EXCLUDE (contra, rounding, signed) FROM sources
    UNION ALL BY NAME
    SELECT {entry}, sources.contra AS account, sources.close AS source,
        -sum(sources.amount)::{amount} AS amount,
        -cut(sum(sources.signed), sources.minor_unit) AS posted
    FROM sources
    WHERE sources.left_out IS NULL
    GROUP BY {entry}, sources.contra
    UNION ALL BY NAME
    SELECT {entry}, sources.rounding AS account, sources.close AS source,
        cut(sum(sources.signed), sources.minor_unit) - sum(sources.posted) AS posted
    FROM sources
    WHERE sources.left_out IS NULL
    GROUP BY {entry}, sources.rounding
    {cancelled}
)
SELECT
    lines.entry, lines.kind, lines.month, lines.period, lines.date, lines.account,
    text_of(lines.posted, lines.minor_unit) AS debit,
    text_of(-lines.posted, lines.minor_unit) AS credit, lines.currency, lines.connection,
    lines.partner, lines.source, lines.close, lines.minor_unit, lines.amount, lines.left_out
FROM lines
"""
ENTRY: Final = ", ".join(
    f"sources.{name}"
    for name in (
        *("entry", "kind", "period", "date", "minor_unit", "currency", "connection", "partner"),
        "close",
    )
)
# Of an earlier copy of the month: its entries, but not those by which it cancelled others.
CANCELLED: Final = """
UNION ALL BY NAME
SELECT
    before.entry || '-cancelled' AS entry, 'cancellation' AS kind,
    before.period, before.date, before.account, {minor_unit} AS minor_unit, before.currency,
    before.connection,
    if(list_contains($erased::VARCHAR[], left(sha256(before.partner), 16)), '[erased]',
        before.partner) AS partner,
    before.entry AS source, $close AS close,
    ifnull(before.credit::DECIMAL(38, 4), 0) - ifnull(before.debit::DECIMAL(38, 4), 0) AS posted,
    posted::{amount} AS amount
FROM read_csv({file}, {csv}) AS before
WHERE before.kind <> 'cancellation'
"""
COPY_ENTRIES: Final = """
COPY ({query} ORDER BY period, kind, entry, source = close, source) TO {file} (FORMAT parquet)
"""
COPY_JOURNAL: Final = """
COPY (
    SELECT entries.* EXCLUDE (month, minor_unit, amount, left_out)
    FROM read_parquet({entries}) AS entries
    WHERE entries.debit IS NOT NULL OR entries.credit IS NOT NULL
    ORDER BY entries.period, entries.kind, entries.entry, entries.source = entries.close,
        entries.source, entries.account
) TO {file} (FORMAT csv, HEADER)
"""
COLUMNS: Final = (
    "entry", "kind", "period", "date", "account", "debit", "credit", "currency", "connection",
    "partner", "source", "close",
)  # fmt: skip
# Nothing is guessed: identifiers of partners may have quotes, commas and line ends.
TYPES: Final = ", ".join(f"{name}: 'VARCHAR'" for name in COLUMNS)
CSV: Final = (
    f"columns = {{{TYPES}}}, header = true, auto_detect = false, nullstr = '', "
    "allow_quoted_nulls = false"
)
NUMBERS: Final = """
SELECT
    count(coalesce(entries.debit, entries.credit)) AS lines,
    count(*) FILTER (entries.kind = 'accrual' AND entries.left_out LIKE 'uncertain%') AS uncertain
FROM read_parquet($file) AS entries
"""


@dataclass(frozen=True)
class JournalBasis:
    """What a journal rests on besides the open books.

    `earlier` is the journal of the last copy of the same month that had one; `erased` are digests
    of identifiers.
    """

    accounts: Accounts
    earlier: Path | None
    erased: Sequence[str]


def write_journal(
    db: duckdb.DuckDBPyConnection, folder: Path, close: tuple[date, int], basis: JournalBasis
) -> None:
    """Write the entries of a month, with what is left out and why, and the lines for a ledger.

    `close` is the first day of the month and the number of its copy. Raises duckdb.Error.
    """
    month, number = close
    amount = find_unbilled(db, month)
    bound: dict[str, Any] = {
        "month": month,
        "last_day": month_after(month) - timedelta(days=1),
        "next_month": month_after(month),
        "close": f"{month:%Y-%m}-{number:03}",
        "is_cost": basis.accounts.side == "payable",
    }
    cancelled = ""
    if basis.earlier is not None:
        cancelled = CANCELLED.format(
            amount=amount,
            minor_unit=minor_unit_of("before.currency"),
            file=quote_text(str(basis.earlier)),
            csv=CSV,
        )
        bound["erased"] = list(basis.erased)
    query = QUERY.format(entry=ENTRY, amount=amount, cancelled=cancelled)
    rows = db.from_arrow(_rows_of(basis.accounts))
    rows.query("rows", "CREATE OR REPLACE TEMP TABLE accounts AS FROM rows")
    entries = quote_text(str(folder / ENTRIES))
    db.execute(COPY_ENTRIES.format(query=query, file=entries), bound)
    file = quote_text(str(folder / JOURNAL))
    db.execute(COPY_JOURNAL.format(entries=entries, file=file))


def describe_journal(folder: Path) -> str:
    """Return what the journal in a copy accrues and leaves out, as sentences."""
    if not (folder / JOURNAL).exists():
        return NO_ACCOUNTS
    with duckdb.connect(config=SETTINGS) as db:
        entries = {"file": str(folder / ENTRIES)}
        accrued = [_amount_of(row) for row in fetch_rows(db, WRITTEN, entries)]
        (numbers,) = fetch_rows(db, NUMBERS, entries)
    text = f"{JOURNAL} has {counted(numbers['lines'], 'line')}."
    if accrued:
        text += f" Accrued: {', '.join(accrued)}."
    if numbers["uncertain"]:
        text += f" Left out: {counted(numbers['uncertain'], 'uncertain break')}."
    return text


def _amount_of(row: Row) -> str:
    return f"{row['currency']} {format_amount(row['posted'], row['currency'])}"


def _rows_of(accounts: Accounts) -> pa.Table:
    """Return the accounts for all, by kind and by partner, as a table."""
    rows = [_row("all", None, accounts)]
    for kind, others in accounts.kind.items():
        rows.append(_row("kind", kind, others))
    for partner, others in accounts.partner.items():
        rows.append(_row("partner", partner, others))
    schema = pa.schema([(name, pa.string()) for name in ("scope", "name", *NAMES)])
    return pa.Table.from_pylist(rows, schema)


def _row(scope: str, name: str | None, table: Accounts | OtherAccounts) -> dict[str, str | None]:
    return {"scope": scope, "name": name, **{key: getattr(table, key) for key in NAMES}}
