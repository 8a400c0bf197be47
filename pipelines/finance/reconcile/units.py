"""Finds whether amounts are in euros or in cents: by the data of both sides, else by names."""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, localcontext
from typing import Final, NamedTuple

from pipelines.finance.currencies import digits_of, minor_unit
from pipelines.finance.reconcile.evidence import (
    EXACT_DIGITS,
    FEWEST_ROWS,
    SOME,
    Evidence,
    Pair,
    Share,
)
from pipelines.finance.reconcile.roles import Column, words

MINOR_WORDS: Final = {"cent", "minor", "penny", "pence"}
AMOUNTS: Final = {
    "usage": {"usage.amount"},
    "billing": {"billing.line_amount", "billing.amount"},
}
UNITS: Final[
    dict[str, Callable[[int], int]]
] = {  # which sides are in minor units -> the power of ten that a bill is larger by
    "neither": lambda _digits: 0,
    "billing": lambda digits: digits,
    "usage": lambda digits: -digits,
}
Fits = Callable[[Pair, int], bool]


class Units(NamedTuple):
    """Which sides have amounts in minor units, and why."""

    minor: frozenset[str]
    reason: str


def find_units(evidence: Evidence, found: Mapping[str, Column]) -> Units:
    """Return the sides whose amounts are in minor units, by the roles that have a column."""
    amounts = {
        side: [column for role, column in found.items() if role in roles]
        for side, roles in AMOUNTS.items()
    }
    named = {
        side
        for side, columns in amounts.items()
        if any(MINOR_WORDS & set(words(each.path)) for each in columns)
    }
    name = "A name says cents." if named else "Nothing shows another unit."
    side, shown = _compared(evidence, found)
    if side is None:
        return Units(frozenset(named), f"No currency shows the unit. {name}")
    if side != "neither":
        return Units(frozenset({side}), shown)
    if named:  # equal amounts are in one unit
        return Units(frozenset({"usage", "billing"}), f"{shown} {name}")
    return Units(frozenset(), shown)


def _compared(evidence: Evidence, found: Mapping[str, Column]) -> tuple[str | None, str]:
    """Return the side in minor units, or `neither`, and why; None where the data cannot show it."""
    for pairs, fits, meaning in (
        (evidence.billed_usage(found), _is_equal, "sums of lines are"),
        (evidence.totals(found), _is_near, "totals of partners are near"),
    ):
        telling = [each for each in pairs if digits_of(each.currency) and _is_large(each)]
        shares = {side: _share(telling, fits, side) for side in UNITS}
        side = max(shares, key=lambda each: shares[each].value)
        enough = 1 if fits is _is_near else FEWEST_ROWS
        if shares[side].whole >= enough and shares[side].value >= SOME:
            factors = {each.currency: UNITS[side](digits_of(each.currency)) for each in telling}
            text = ", ".join(sorted(f"{code} {_factor(power)}" for code, power in factors.items()))
            return side, f"{shares[side]} {meaning} the used amount times: {text}."
    return None, ""


def _share(pairs: Iterable[Pair], fits: Fits, side: str) -> Share:
    with localcontext(prec=EXACT_DIGITS):
        return Share.of(fits(each, UNITS[side](digits_of(each.currency))) for each in pairs)


def _is_large(pair: Pair) -> bool:
    """Return whether both amounts are large enough that a factor of ten shows."""
    return min(abs(pair.used), abs(pair.billed)) > 10 * minor_unit(pair.currency)


def _is_equal(pair: Pair, power: int) -> bool:
    """Return whether a bill is the used amount times a power of ten, to half a minor unit."""
    unit = minor_unit(pair.currency).scaleb(max(power, 0))
    return abs(pair.billed - pair.used.scaleb(power)) * 2 <= unit


def _is_near(pair: Pair, power: int) -> bool:
    billed, used = abs(pair.billed), abs(pair.used.scaleb(power))
    return billed <= 3 * used and used <= 3 * billed


def _factor(power: int) -> str:
    return f"{Decimal(1).scaleb(power):f}"
