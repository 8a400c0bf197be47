"""The journal of a closed month: what a ledger posts of usage that is not billed.

Here: which breaks and corrections become entries, with which accounts; which are left out, and why.
Not here: how an auditor finds out that they follow from the rows (verify).

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
from pipelines.finance.currencies import minor_unit_of
from pipelines.finance.mapping import Accounts, OtherAccounts
from pipelines.finance.reconcile.close_copy import ENTRIES, JOURNAL
from pipelines.finance.reconcile.closed_rows import month_after
from pipelines.finance.reports.text import format_amount
from pipelines.warehouse.duckdb_file import SETTINGS, Row, fetch_rows

NO_ACCOUNTS: Final = "No journal was written: mapping.toml has no [accounts]."
NAMES: Final = ("accrued", "result", "correction", "rounding")
LEAST_SCALE: Final = 4  # digits behind the point that lines of an earlier journal may have
# Usage without a bill, and the part of it that its bill lacks. What is billed too high is no usage.
UNBILLED: Final = """
SELECT
    'accrual' AS kind, breaks.rule AS account_kind, breaks.month, breaks.connection,
    breaks.partner, breaks.currency, breaks.break_id AS source, breaks.own_source,
    -breaks.difference::{amount} AS amount,
    CASE WHEN breaks.month IS NULL THEN 'it has no month'
         WHEN breaks.difference IS NULL THEN 'it has no amount'
         WHEN breaks.currency IS NULL THEN 'it has no currency'
         WHEN breaks.uncertain IS NOT NULL THEN 'uncertain: ' || breaks.uncertain
         WHEN breaks.doubt IS NOT NULL THEN 'uncertain: ' || breaks.doubt
         WHEN breaks.rule NOT IN ('not_billed', 'different') THEN 'it is no unbilled usage'
         WHEN breaks.cause IN ('other partner', 'other currency', 'no currency')
            THEN 'it is billed to, or in, another one: ' || breaks.cause
         WHEN sign(breaks.difference) <> -sign(ifnull(breaks.used_amount, 0))
            THEN 'the usage is billed in full'
         END AS left_out
FROM reconciliation.breaks AS breaks
WHERE (breaks.month <= $month OR breaks.month IS NULL) AND breaks.state <> 'resolved'
"""
# A ledger has a bill from its invoice, whenever that comes. A correction moves what the accrual has
# of usage: nothing, if its break is left out. That it disappeared is no such break.
CORRECTED: Final = """
SELECT
    'correction' AS kind, 'correction' AS account_kind, posted.month, posted.connection,
    posted.partner, posted.currency,
    concat(posted.side, ' ', posted.id, ' of ', strftime(posted.month, '%Y-%m')) AS source,
    posted.difference::{amount} AS amount,
    CASE WHEN posted.side = 'billing' THEN 'the ledger has a bill from its invoice'
         WHEN posted.currency IS NULL THEN 'it has no currency'
         ELSE not_accrued.left_out END AS left_out
FROM reconciliation.corrections AS posted
LEFT JOIN not_accrued USING (side, connection, id, partner, currency)
WHERE posted.posted_to = $month
"""
# What is posted to a later month, whose journal moves it: that month accrues it, as balances say.
# A month that was reopened, and is closed again, is before it.
POSTED_LATER: Final = """
SELECT
    'accrual' AS kind, 'not_billed' AS account_kind, posted.month, posted.connection,
    posted.partner, posted.currency,
    concat(posted.side, ' ', posted.id, ' of ', strftime(posted.month, '%Y-%m')) AS source,
    -sum(posted.difference)::{amount} AS amount, NULL AS left_out
FROM reconciliation.corrections AS posted
ANTI JOIN not_accrued USING (side, connection, id, partner, currency)
WHERE posted.side = 'usage' AND posted.currency IS NOT NULL
    AND posted.month <= $month AND posted.posted_to > $month
GROUP BY ALL
HAVING sum(posted.difference) <> 0
"""
FOUND: Final = """
WITH unbilled AS (
    {unbilled}
), not_accrued AS (
    SELECT
        rows.side, rows.connection, rows.id, rows.partner, rows.currency,
        min(unbilled.left_out) AS left_out
    FROM unbilled
    JOIN reconciliation.break_rows AS rows ON rows.break_id = unbilled.source
    WHERE rows.side = 'usage' AND unbilled.left_out IS NOT NULL
        AND unbilled.account_kind <> 'disappeared'
        AND unbilled.own_source IS NULL
    GROUP BY ALL
), found AS (
    FROM unbilled
    UNION ALL BY NAME
    {posted_later}
    UNION ALL BY NAME
    {corrected}
), dated AS (
    SELECT found.*, $month AS period, $last_day AS date FROM found
    UNION ALL BY NAME
    SELECT found.* REPLACE ('reversal' AS kind, -found.amount AS amount),
        $next_month AS period, $next_month AS date
    FROM found
    WHERE found.kind = 'accrual' AND found.left_out IS NULL
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
        {minor_unit} AS minor_unit, given.currency, given.connection, given.partner, given.source,
        $close AS close, given.amount, if($is_cost, given.amount, -given.amount) AS signed,
        if(given.left_out IS NULL, cut(signed, minor_unit), NULL) AS posted, given.left_out
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
), entries AS (
    SELECT
        lines.* REPLACE (coalesce(lines.left_out, if(
            max(abs(lines.posted)) OVER (PARTITION BY lines.entry) = 0,
            'it is less than half of the smallest unit', NULL
        )) AS left_out)
    FROM lines
)
SELECT
    lines.entry, lines.kind, lines.month, lines.period, lines.date, lines.account,
    text_of(lines.posted, lines.minor_unit) AS debit,
    text_of(-lines.posted, lines.minor_unit) AS credit, lines.currency, lines.connection,
    lines.partner, lines.source, lines.close, lines.minor_unit, lines.amount, lines.left_out
FROM entries AS lines
-- What is left out is not reversed, and has no line of its entry.
WHERE lines.left_out IS NULL OR (lines.kind <> 'reversal' AND lines.source <> lines.close)
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
# Amounts in minor units, and their text with as many digits as the currency has. Zero is no line.
# Each case has the type of all: DuckDB would take one with fewer digits for the others, too.
MACROS: Final = """
CREATE OR REPLACE TEMP MACRO cut(x, minor_unit) AS CASE minor_unit
    WHEN 1 THEN round(x, 0)::DECIMAL(38, 4) WHEN 0.01 THEN round(x, 2)::DECIMAL(38, 4)
    WHEN 0.001 THEN round(x, 3)::DECIMAL(38, 4) ELSE round(x, 4)::DECIMAL(38, 4) END;
CREATE OR REPLACE TEMP MACRO text_of(x, minor_unit) AS if(x > 0, left(x::VARCHAR,
    length(x::VARCHAR) - CASE minor_unit WHEN 1 THEN 5 WHEN 0.01 THEN 2 WHEN 0.001 THEN 1 ELSE 0 END
), NULL);
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
ACCRUED: Final = """
SELECT
    entries.currency,
    sum(if(entries.amount < 0, entries.posted, -entries.posted)) AS amount
FROM (
    SELECT entries.*, coalesce(entries.debit, entries.credit)::DECIMAL(38, 4) AS posted
    FROM read_parquet($file) AS entries
) AS entries
-- The line of the account has the sum of the entry, that of the rounding has no amount.
WHERE entries.kind = 'accrual' AND entries.source = entries.close
    AND entries.amount IS NOT NULL AND entries.posted IS NOT NULL
GROUP BY entries.currency
ORDER BY entries.currency
"""
NUMBERS: Final = """
SELECT
    count(coalesce(entries.debit, entries.credit)) AS lines,
    count(*) FILTER (entries.left_out LIKE 'uncertain%') AS uncertain
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
    amount = amount_type(db)
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
    query = FOUND.format(
        unbilled=UNBILLED.format(amount=amount),
        corrected=CORRECTED.format(amount=amount),
        posted_later=POSTED_LATER.format(amount=amount),
        minor_unit=minor_unit_of("given.currency"),
        entry=ENTRY,
        amount=amount,
        cancelled=cancelled,
    )
    db.execute(MACROS)
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
        accrued = [_amount_of(row) for row in fetch_rows(db, ACCRUED, entries)]
        (numbers,) = fetch_rows(db, NUMBERS, entries)
    text = f"{JOURNAL} has {counted(numbers['lines'], 'line')}."
    if accrued:
        text += f" Accrued: {', '.join(accrued)}."
    if numbers["uncertain"]:
        text += f" Left out: {counted(numbers['uncertain'], 'uncertain break')}."
    return text


def _amount_of(row: Row) -> str:
    return f"{row['currency']} {format_amount(row['amount'], row['currency'])}"


def amount_type(db: duckdb.DuckDBPyConnection) -> str:
    """Return a type that holds the amounts of breaks, corrections and earlier journals."""
    scale = LEAST_SCALE
    for table in ("breaks", "corrections"):
        (found,) = db.sql(f"SELECT difference FROM reconciliation.{table}").types
        scale = max(scale, int(str(found).partition(",")[2].rstrip(")") or 0))
    return f"DECIMAL(38, {scale})"


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
