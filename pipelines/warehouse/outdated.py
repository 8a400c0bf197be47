"""What is not as it was signed off: a closed month's frozen copy beside its records of today.

Compared on the mapping that it was signed off on, record by record; the copy is only read. Also the
same in words. Not here: the tables that analysts read of it (corrections).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import duckdb
import pyarrow as pa

from pipelines.settings import currencies
from pipelines.settings.mapping import parsed
from pipelines.state.closes import Close
from pipelines.warehouse import matching
from pipelines.warehouse.database import append, fill, together
from pipelines.warehouse.frozen import SIDES, Copies, Frozen, prints

About = tuple[str | None, ...]
FROZEN = """
CREATE OR REPLACE TEMP TABLE frozen (
    side VARCHAR, connection VARCHAR, id VARCHAR, partner VARCHAR, currency VARCHAR,
    quantity DECIMAL(38, {quantity}), amount DECIMAL(38, {amount}), page VARCHAR, row INTEGER
)
"""
CHANGED = """
WITH records AS (
    SELECT true AS signed, e.page IS NOT NULL AS erased, side, connection, id, partner, currency,
           quantity::DECIMAL(38, {quantity}) AS quantity, amount::DECIMAL(38, {amount}) AS amount
    FROM frozen AS f LEFT JOIN erased AS e ON (e.page, e.row) = (f.page, f.row)
    UNION ALL
    SELECT false, false, 'usage', connection, id, partner, currency,
           quantity::DECIMAL(38, {quantity}), amount::DECIMAL(38, {amount})
    FROM used WHERE month = $month
    UNION ALL
    SELECT false, false, 'billing', connection, id, partner, currency,
           quantity::DECIMAL(38, {quantity}), amount::DECIMAL(38, {amount})
    FROM billed WHERE month = $month
)
SELECT side, connection, id, partner, currency,
       sum(amount) FILTER (signed) AS amount_then, sum(amount) FILTER (NOT signed) AS amount_now,
       CASE WHEN count(*) FILTER (signed) = 0 THEN 'new' WHEN bool_or(NOT signed) THEN 'restated'
            WHEN bool_and(erased) THEN 'erased' ELSE 'gone' END AS why
FROM records GROUP BY side, connection, id, partner, currency
HAVING amount_then IS DISTINCT FROM amount_now
    OR sum(quantity) FILTER (signed) IS DISTINCT FROM sum(quantity) FILTER (NOT signed)
    OR count(*) FILTER (signed) <> count(*) FILTER (NOT signed)
ORDER BY ALL
"""
ORDER = ("restated", "new", "gone", "erased")
NONE = Decimal(0)


@dataclass(frozen=True)
class Change:
    """A record of a closed month that is not as it was signed off."""

    side: str
    connection: str | None
    id: str | None
    partner: str | None
    currency: str | None
    amount_then: Decimal | None
    amount_now: Decimal | None
    why: str

    @property
    def about(self) -> About:
        """Which record it is."""
        return self.side, self.connection, self.id, self.partner, self.currency

    @property
    def difference(self) -> Decimal | None:
        """What it is worth more now; None where no amount is known."""
        if self.amount_then is None and self.amount_now is None:
            return None
        return (self.amount_now or NONE) - (self.amount_then or NONE)


Found = dict[Close, list[Change] | None]


def changes(
    database: duckdb.DuckDBPyConnection, copies: Copies, closed: Iterable[Close], as_of: datetime
) -> Found:
    """Compare frozen copies with the records of their months as they are now.

    None where a copy cannot be read.
    """
    found: Found = {}
    copied = dict[str, list[Close]]()
    for close in closed:
        try:
            copied.setdefault(copies.mapping(close), []).append(close)
        except OSError:
            found[close] = None
    for mapping, some in copied.items():
        matching.prepare(database, parsed(mapping, "mapping.toml"), as_of)
        now = prints(database, [each.month for each in some])
        found |= {each: _changes(database, copies, each, now.get(each.month)) for each in some}
    return found


def _changes(
    database: duckdb.DuckDBPyConnection, copies: Copies, close: Close, now: str | None
) -> list[Change] | None:
    """Compare one copy, record by record where they are not all the same."""
    try:
        frozen = copies.read(close)
        return [] if frozen.print == now else _compared(database, copies, close, frozen)
    except (OSError, pa.ArrowException):
        return None


def _compared(
    database: duckdb.DuckDBPyConnection, copies: Copies, close: Close, frozen: Frozen
) -> list[Change]:
    scales = _scales(database, copies, close)
    _load(database, copies, close, FROZEN.format(**scales))
    gone = [(page, row) for page in frozen.pages for row in copies.archive.erased(page)]
    database.execute("CREATE OR REPLACE TEMP TABLE erased (page VARCHAR, row INTEGER)")
    fill(database, "erased", sorted(gone))
    found = database.execute(CHANGED.format(**scales), {"month": close.month}).fetchall()
    together(database, ("DROP TABLE frozen", "DROP TABLE erased"))
    return [Change(*row) for row in found]


def _scales(database: duckdb.DuckDBPyConnection, copies: Copies, close: Close) -> dict[str, int]:
    """Return how many digits behind the point hold every number, then and now.

    Where two kinds meet, DuckDB keeps 38 digits and rounds the rest away.
    """
    shown = [database.sql(f"FROM {table} LIMIT 0").to_arrow_table() for table in SIDES.values()]
    schemas = [each.schema for each in shown]
    schemas += [copies.schema(close, table) for table in SIDES.values()]
    return {
        name: max(schema.field(name).type.scale for schema in schemas)
        for name in ("quantity", "amount")
    }


def _load(database: duckdb.DuckDBPyConnection, copies: Copies, close: Close, made: str) -> None:
    """Load both sides of a copy, some thousand rows at a time."""
    database.execute(made)
    for side, table in SIDES.items():
        for batch in copies.batches(close, table):
            rows = pa.Table.from_batches([batch])
            column = pa.array([side] * rows.num_rows, pa.string())
            append(database, "frozen", rows.append_column("side", column))


def said(changes: Sequence[Change]) -> str:
    """Say in words what has changed, a side after the other where both have."""
    if not changes:
        return "as it was signed off"
    sides = {side: [each for each in changes if each.side == side] for side in SIDES}
    there = {side: found for side, found in sides.items() if found}
    words = []
    for side, found in there.items():
        counts = Counter(each.why for each in found)
        each = [(counts[why], why) for why in ORDER if counts[why]]
        first = f"{each[0][0]:,} record{'s' if each[0][0] > 1 else ''} {each[0][1]}"
        listed = ", ".join([first, *(f"{count:,} {why}" for count, why in each[1:])])
        named = f"{side}: " if len(there) > 1 else ""
        nets = net(found)
        words.append(f"{named}{listed} since sign-off" + (f", net {nets}" if nets else ""))
    return "; ".join(words)


def net(changes: Sequence[Change]) -> str:
    """Return what changes of one side are worth, by currency; erased records are worth the same."""
    sums = dict[str, Decimal]()
    for each in changes:
        if each.why != "erased" and each.difference is not None:
            currency = each.currency or "of no currency"
            sums[currency] = sums.get(currency, NONE) + each.difference
    return ", ".join(f"{currencies.shown(sums[name], name):+f} {name}" for name in sorted(sums))
