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


def expected_parts(
    then: Sequence[Row], now: Sequence[Row], months: tuple[str, str] = (AUGUST, SEPTEMBER)
) -> Parts:
    """Return the parts that are not 0 of the rows of one side, partner and currency."""
    month_before, month = months
    known = {row.id for row in then}
    parts = dict.fromkeys(PARTS, ZERO)
    for of_month, sign in ((month, 1), (month_before, -1)):
        late = sum_of(row for row in now if row.month == of_month and row.id not in known)
        total = sum_of(row for row in now if row.month == of_month)
        base = sum_of(row for row in then if row.month == of_month)
        parts["late"] += sign * late
        parts["restated"] += sign * (total - late - base)
        for kind, part in (("credit note", "credits"), ("fee", "fees")):
            of_kind = (row for row in then if row.month == of_month and row.kind == kind)
            parts[part] += sign * sum_of(of_kind)
    ordinary = [row for row in then if row.kind == "usage"]
    before = [row for row in ordinary if row.month == month_before]
    after = [row for row in ordinary if row.month == month]
    if not before:
        parts["new"] = sum_of(after)
    elif not after:
        parts["lost"] = -sum_of(before)
    else:
        for plan in {row.plan for row in ordinary}:
            explain_item(
                parts,
                [row for row in before if row.plan == plan],
                [row for row in after if row.plan == plan],
            )
    return {name: amount for name, amount in parts.items() if amount}


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
