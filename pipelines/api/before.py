"""The last reading of a list, compared with the pages of the current one.

Here: whether the order changed since then, and whether all rows of then were seen again. Not here:
what follows from it (chain).
"""

from dataclasses import dataclass

from pipelines.api.seen import Seen
from pipelines.api.stitch import Look, out_of_order

FEW = 3  # rows in another order than last time: single edits, not an order that changes


@dataclass(frozen=True)
class Before:
    """The last proven reading of the list: how many rows, and their order."""

    rows: int = 0
    order: Seen | None = None


NOTHING = Before()


@dataclass
class Since:
    """Compares the pages of a reading with the order of the last one."""

    order: Seen | None
    _again: int = 0  # rows of the last reading that were seen
    _drift: int = 0  # of these, rows that stood in another order

    def moved(self, look: Look, *, repeats: bool) -> bool:
        """Compare a page; return whether the order has changed since the last reading.

        With `repeats`, order is not compared: repeated rows have no single place.
        """
        if self.order is None:
            return False
        places, once = self.order.find(look.marks), look.times
        unseen = [
            (each, at)
            for each, at, known in zip(look.marks, places, look.known, strict=True)
            if each and at and not known
        ]
        self._again += len({each for each, _at in unseen})
        if repeats:
            return False
        single = [at[0] for each, at in unseen if len(at) == 1 and once[each] == 1]
        self._drift += len(out_of_order(single))
        return self._drift > FEW

    @property
    def all_seen(self) -> bool:
        """Whether every row of the last reading was seen again."""
        return self.order is not None and self._again >= len(self.order)
