"""Chains that agree: what several readings of a list, one after the other, show together.

One chain cannot see a row that moves from a page that is not read yet to one that is, if a row that
was read is removed meanwhile: the pages join as if nothing had happened. A second chain shows both:
it lacks the removed row, and has the one that moved.

Here: whether agreeing chains are enough, and the rows of them all. Not here: how a chain is read
and compared with another one (`chain.py`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipelines.extract.chain import Chain
from pipelines.extract.pages import Page, RowArray, is_in

# After so many chains, a row that the later ones do not show was removed. Two chains cannot tell a
# removal from a move: of 300 readings with removals, 143 were PARTIAL (docs/decisions.md).
DECIDING = 3


class CompleteRows(NamedTuple):
    """The rows of a list that chains show to be complete.

    `length` is how many rows the list had at the end of the newest of these `chains`.
    """

    rows: RowArray
    length: int
    chains: int


class Agreement:
    """Chains in a row that show the same order and the same copies, newest last."""

    def __init__(self) -> None:
        self._chains: list[Chain] = []

    @property
    def last(self) -> Chain | None:
        """The newest chain."""
        return self._chains[-1] if self._chains else None

    def begin(self, *chains: Chain) -> None:
        """Forget the chains; begin anew with another one, or none."""
        self._chains = list(chains)

    def add(self, chain: Chain) -> None:
        """Add a chain that agrees with the last one."""
        self._chains.append(chain)

    def is_enough(self, *, rows_may_move: bool) -> bool:
        """Return whether no further chain is needed.

        A row that the newest one does not show was removed, or moved to pages that it had read. If
        none is lost, two are enough; if `rows_may_move`, only if no row came before rows that the
        first had read. Else a third one decides.
        """
        if len(self._chains) < DECIDING - 1:
            return False
        before, last = self._chains[-2:]
        has_moved = rows_may_move and before.unexplained > 0
        if not len(last.lost(before)) and not has_moved:
            return True
        return len(self._chains) >= DECIDING

    def has_returned(self) -> bool:
        """Return whether the newest chain shows a row again that the one before had lost."""
        if len(self._chains) < DECIDING:
            return False
        first, before, last = self._chains[-DECIDING:]
        return bool(is_in(before.lost(first), last.rows()["mark"]).any())

    def rows(self) -> CompleteRows:
        """Return the rows of all chains, each as the newest chain shows it.

        A row that existed throughout is in nearly every chain. Some rows may have been removed
        meanwhile.
        """
        last = self._chains[-1]
        rows = last.rows()
        for chain in self._chains[-2::-1]:
            older = chain.rows()
            only_older = older[~is_in(older["mark"], rows["mark"])]
            rows = np.concatenate([rows, only_older])
        return CompleteRows(rows, last.length + len(last.head), len(self._chains))


def rows_of_equal_chains(before: Chain, chain: Chain) -> CompleteRows | None:
    """Return the rows of a list without a key, in which some rows are equal.

    Equal rows could have been mistaken for one another. So the first of two chains must have seen
    no change, and the second one must show all of it.
    """
    if before.meets_head and before.is_still() and chain.repeats(before):
        return CompleteRows(before.rows(), before.length + len(before.head), chains=2)
    return None


def why_denied(pages: Sequence[Page]) -> str:
    """Return why the service's own words deny that pages show a whole list; empty if none do."""
    for page in pages:
        if page.denial:
            offset = page.request.offset
            return f"the service says `{page.denial}` of its own answer at offset {offset:,}"
    ends = [page for page in pages if page.is_last]
    # Both numbers are of one answer. Still, the service may count and read at two moments.
    if ends and ends[-1].lacks_rows:
        return f"the service counts {ends[-1].total:,} rows, and shows {ends[-1].end:,}"
    return ""
