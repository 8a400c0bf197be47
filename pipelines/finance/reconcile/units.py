"""Finds whether amounts are in euros or in cents: by the data of both sides, else by names."""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, localcontext
from typing import Final, NamedTuple

from pipelines.finance.currencies import digits_of, minor_unit
from pipelines.finance.reconcile.evidence import SOME, Share
from pipelines.finance.reconcile.roles import FieldColumn, words
from pipelines.finance.reconcile.samples import EXACT_DIGITS, FEWEST_ROWS, Pair, Samples

MINOR_WORDS: Final = {"cent", "minor", "penny", "pence"}
AMOUNTS: Final = {
    "usage": {"usage.amount"},
    "billing": {"billing.line_amount", "billing.amount"},
}
# Which side is in minor units -> how often its amounts have the digits of the currency more
# before the point than those of the other side: a bill in cents is 100 times its usage in euros.
UNITS: Final = {"neither": 0, "billing": 1, "usage": -1}
Fits = Callable[[Pair, int], bool]


class Units(NamedTuple):
    """Which sides have amounts in minor units, and why."""

    minor: frozenset[str]
    reason: str


def find_units(samples: Samples, roles: Mapping[str, FieldColumn]) -> Units:
    """Return the sides whose amounts are in minor units, by the roles that have a column."""
    named = set()
    for side, amount_roles in AMOUNTS.items():
        for role in amount_roles & roles.keys():
            if MINOR_WORDS & set(words(roles[role].path)):
                named.add(side)
    name = "A name says cents." if named else "Nothing shows another unit."
    side_in_minor, shown = _compared(samples, roles)
    if side_in_minor is None:
        return Units(frozenset(named), f"No currency shows the unit. {name}")
    if side_in_minor != "neither":
        return Units(frozenset({side_in_minor}), shown)
    if named:  # equal amounts are in one unit
        return Units(frozenset({"usage", "billing"}), f"{shown} {name}")
    return Units(frozenset(), shown)


def _compared(samples: Samples, roles: Mapping[str, FieldColumn]) -> tuple[str | None, str]:
    """Return the side in minor units, or `neither`, and why; None where the data cannot show it.

    Single records show it best. Totals are compared where no line names its usage.
    """
    shown = _show(samples.billed_usage(roles), _is_equal, FEWEST_ROWS, "sums of lines are")
    if shown is None:
        shown = _show(samples.totals(roles), _is_near, 1, "totals of partners are near")
    return shown or (None, "")


def _show(pairs: Iterable[Pair], fits: Fits, fewest: int, meaning: str) -> tuple[str, str] | None:
    """Return the side in minor units as pairs show it, and why; None where they do not."""
    telling = [pair for pair in pairs if digits_of(pair.currency) and _is_large(pair)]
    shares = {side: _share(telling, fits, side) for side in UNITS}
    side = max(shares, key=lambda name: shares[name].value)
    share = shares[side]
    if share.whole < fewest or share.value < SOME:
        return None
    factors = {pair.currency: Decimal(1).scaleb(_power(pair.currency, side)) for pair in telling}
    text = ", ".join(sorted(f"{code} {factor:f}" for code, factor in factors.items()))
    return side, f"{share} {meaning} the used amount times: {text}."


def _share(pairs: Iterable[Pair], fits: Fits, side: str) -> Share:
    with localcontext(prec=EXACT_DIGITS):
        return Share.of(fits(pair, _power(pair.currency, side)) for pair in pairs)


def _power(currency: str | None, side: str) -> int:
    """Return the power of ten that a bill is larger by than its usage."""
    return UNITS[side] * digits_of(currency)


def _is_large(pair: Pair) -> bool:
    """Return whether both amounts are large enough that a factor of ten shows."""
    return min(abs(pair.used), abs(pair.billed)) > 10 * minor_unit(pair.currency)


def _is_equal(pair: Pair, power: int) -> bool:
    """Return whether a bill is the used amount times a power of ten, to half a minor unit."""
    unit = minor_unit(pair.currency).scaleb(max(power, 0))
    return abs(pair.billed - pair.used.scaleb(power)) * 2 <= unit


def _is_near(pair: Pair, power: int) -> bool:
    """Return whether a bill is the used amount times a power of ten, give or take a factor of 3.

    Totals of partners need not be equal, and two units differ by a factor of 10 at least.
    """
    billed = abs(pair.billed)
    used = abs(pair.used.scaleb(power))
    return billed <= 3 * used and used <= 3 * billed
