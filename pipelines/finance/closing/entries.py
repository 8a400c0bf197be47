"""The entries of a journal: what is accrued or corrected, on the accounts of `mapping.toml`.

An entry is of one kind, partner and currency. Usage that is not billed is accrued at the end of
the month, and reversed at the beginning of the next one, whose close accrues it again if it is
still not billed. So each close accrues what is open of all months until its own.

Not here: which breaks and corrections these are (unbilled).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from pipelines.core.text import quote_text
from pipelines.finance.closing.unbilled import find_unbilled
from pipelines.finance.currencies import minor_unit_of
from pipelines.finance.mapping import Accounts, OtherAccounts
from pipelines.finance.reconcile.closed_rows import month_after

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


@dataclass(frozen=True)
class JournalBasis:
    """What a journal rests on besides the open books.

    `earlier` is the journal of the last copy of the same month that had one; `erased` are digests
    of identifiers.
    """

    accounts: Accounts
    earlier: Path | None
    erased: Sequence[str]


def find_entries(
    db: duckdb.DuckDBPyConnection, close: tuple[date, int], basis: JournalBasis
) -> tuple[str, dict[str, Any]]:
    """Return the statement of the lines of a journal, also of what is left out, and what it binds.

    `close` is the first day of the month and the number of its copy. Table `account_names` has the
    names of accounts afterwards. Raises duckdb.Error.
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
    db.execute("CREATE OR REPLACE TEMP TABLE account_names (account VARCHAR, name VARCHAR)")
    for named in basis.accounts.names.items():
        db.execute("INSERT INTO account_names VALUES ($1, $2)", named)
    return query, bound


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
