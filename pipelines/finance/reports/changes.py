"""What changed since earlier books: breaks, and the difference of each currency."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from pipelines.finance.reports.amounts import EXACT, Amount, SignedSums, Sums, add_up_by_sign
from pipelines.finance.reports.queries import Figures
from pipelines.warehouse.duckdb_file import Row

NO_BREAK: Final[Row] = {"outcome": "no longer found"}
NEW: Final = "new"
NAMED: Final = 2  # new breaks that are named; the others are added up


@dataclass(frozen=True)
class Move:
    """Breaks to which the same happened: `kind` is "new" or what became of them.

    `difference` of a break "of another amount" is by how much it changed. `others` are the sums of
    those that are not named, by sign.
    """

    kind: str
    breaks: tuple[Row, ...]
    named: tuple[Row, ...]
    others: SignedSums


@dataclass(frozen=True)
class Changes:
    """What changed since the previous books with older data, those of `version`.

    `open_before` and `moves` are of breaks of used and billed, `own_before` of those with own
    books. `new` are the identifiers of the breaks that are new, of both.
    """

    version: int
    as_of: datetime | None
    open_before: int
    own_before: int
    moves: tuple[Move, ...]
    new: frozenset[str]
    difference: Sums


def changes_since(earlier: Figures, now: Figures) -> Changes:
    """Return what changed since earlier figures."""
    order = [row["currency"] for row in now.tables["currencies"]]
    moves = []
    new: set[str] = set()
    for kind, found in _moves(earlier.breaks, now.breaks).items():
        if kind == NEW:
            new.update(row["break_id"] for row in found)
        # What own books say is in no sum of billed minus used.
        rows = [row for row in found if row["own_source"] is None]
        if not rows:
            continue
        named = NAMED if kind == NEW else 0
        others = add_up_by_sign(rows[named:], order)
        moves.append(Move(kind, tuple(rows), tuple(rows[:named]), others))
    open_before = [row for row in earlier.breaks.values() if row["outcome"] == "open"]
    own_before = sum(row["own_source"] is not None for row in open_before)
    return Changes(
        version=earlier.version,
        as_of=earlier.tables["as_of"][0]["as_of"],
        open_before=len(open_before) - own_before,
        own_before=own_before,
        moves=tuple(moves),
        new=frozenset(new),
        difference=changed_difference(earlier, now),
    )


def change_of(earlier: Figures, total: Row) -> Decimal:
    """Return by how much the difference of a currency has changed since earlier figures."""
    then = {row["currency"]: row["difference"] for row in earlier.tables["currencies"]}
    return EXACT.subtract(total["difference"], then.get(total["currency"], Decimal(0)))


def changed_difference(earlier: Figures, now: Figures) -> Sums:
    """Return by how much the difference changed, of each currency where it did."""
    changed: Sums = {}
    for total in now.tables["currencies"]:
        currency = total["currency"]
        change = change_of(earlier, total)
        if change:
            changed[currency] = Amount(currency, change, 1)
    return changed


def _moves(then: Mapping[str, Row], now: Mapping[str, Row]) -> dict[str, list[Row]]:
    """Return the breaks that changed, by kind: those of now in their order, then those of then."""
    # A break without a row is one that is no longer found, or that was not found yet.
    moves: dict[str, list[Row]] = {}
    for break_id in dict.fromkeys((*now, *then)):
        before = then.get(break_id, NO_BREAK)
        after = now.get(break_id, NO_BREAK)
        is_known = break_id in then
        if before["outcome"] == after["outcome"] == "open":
            change = _subtract(after["difference"], before["difference"])
            if change:
                moves.setdefault("of another amount", []).append({**after, "difference": change})
        elif after["outcome"] == "open":
            moves.setdefault("open again" if is_known else NEW, []).append(after)
        elif before["outcome"] == "open":
            moves.setdefault(after["outcome"], []).append(before)
    return moves


def _subtract(now: Decimal | None, then: Decimal | None) -> Decimal:
    """Return a change; an amount that is not known counts as zero."""
    return EXACT.subtract(now or Decimal(0), then or Decimal(0))
