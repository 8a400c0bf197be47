"""Why a month is not like the one before, in plain Python, for the rows of one side and partner."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from tests.reconcile.flux_books import AUGUST, SEPTEMBER, Row

PARTS = (
    "late", "restated", "credits", "fees", "new", "lost", "volume", "price", "unexplained",
)  # fmt: skip
MINOR = {"JPY": Decimal(1), "KWD": Decimal("0.001")}
CENT = Decimal("0.01")
ZERO = Decimal(0)
Parts = dict[str, Decimal]
Cell = tuple[str, str, str]
# Kind and plan. What is for no usage has no plan.
Item = tuple[str, str | None]
Quantities = tuple[Decimal | None, Decimal | None]
Months = tuple[str, str]
TWO_MONTHS: Months = (AUGUST, SEPTEMBER)


def expected_parts(then: Sequence[Row], now: Sequence[Row], months: Months = TWO_MONTHS) -> Parts:
    """Return the parts that are not 0 of the rows of one side, partner and currency."""
    totals = dict.fromkeys(PARTS, ZERO)
    for parts in expected_items(then, now, months).values():
        for name, amount in parts.items():
            totals[name] += amount
    return {name: amount for name, amount in totals.items() if amount}


def expected_items(
    then: Sequence[Row], now: Sequence[Row], months: Months = TWO_MONTHS
) -> dict[Item, Parts]:
    """Return the parts that are not 0 of each item of one side, partner and currency."""
    month_before, month = months
    known = {row.id for row in then}
    ordinary = [row for row in then if row.kind == "usage"]
    is_new = month_before not in {row.month for row in ordinary}
    is_lost = month not in {row.month for row in ordinary}
    items = {}
    for item in {item_of(row) for row in (*then, *now)}:
        rows_then = [row for row in then if item_of(row) == item]
        rows_now = [row for row in now if item_of(row) == item]
        before = [row for row in rows_then if row.month == month_before]
        after = [row for row in rows_then if row.month == month]
        parts = dict.fromkeys(PARTS, ZERO)
        for of_month, sign in ((month, 1), (month_before, -1)):
            late = sum_of(row for row in rows_now if row.month == of_month and row.id not in known)
            total = sum_of(row for row in rows_now if row.month == of_month)
            base = sum_of(row for row in rows_then if row.month == of_month)
            parts["late"] += sign * late
            parts["restated"] += sign * (total - late - base)
        if item[0] != "usage":
            part = "credits" if item[0] == "credit note" else "fees"
            parts[part] = sum_of(after) - sum_of(before)
        elif is_new or is_lost:
            parts["new" if is_new else "lost"] = sum_of(after) - sum_of(before)
        else:
            explain_item(parts, before, after)
        items[item] = {name: amount for name, amount in parts.items() if amount}
    return items


def item_of(row: Row) -> Item:
    return row.kind, row.plan if row.kind == "usage" else None


def quantities_of(rows: Sequence[Row], item: Item, months: Months = TWO_MONTHS) -> Quantities:
    """Return the quantities of an item in two months; None where a row has none."""
    found: list[Decimal | None] = []
    for month in months:
        of_month = [row.quantity for row in rows if row.month == month and item_of(row) == item]
        known = [Decimal(quantity) for quantity in of_month if quantity is not None]
        found.append(sum(known, ZERO) if len(known) == len(of_month) else None)
    return found[0], found[1]


def explain_item(parts: Parts, before: Sequence[Row], after: Sequence[Row]) -> None:
    """Add what volume and price of one item explain."""
    change = sum_of(after) - sum_of(before)
    if any(row.quantity is None for row in (*before, *after)):
        parts["unexplained"] += change
        return
    quantity = sum(Fraction(row.quantity or 0) for row in before)
    more = sum(Fraction(row.quantity or 0) for row in after) - quantity
    volume = change
    if before and after and quantity:
        minor = MINOR.get(before[0].currency, CENT)
        exact = more * Fraction(sum_of(before)) / quantity
        volume = round(exact / Fraction(minor)) * minor  # Python rounds half to even
    parts["volume"] += volume
    parts["price"] += change - volume


def sum_of(rows: Iterable[Row]) -> Decimal:
    return sum((Decimal(row.amount) for row in rows), ZERO)


def by_cell(rows: Iterable[Row], side: str) -> dict[Cell, list[Row]]:
    """Return the rows of a side by side, partner and currency."""
    cells: dict[Cell, list[Row]] = {}
    for row in rows:
        if side == "billing" or row.kind == "usage":
            cells.setdefault((side, row.partner, row.currency), []).append(row)
    return cells
