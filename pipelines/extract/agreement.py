"""Chains that agree: what several readings of a list, one after the other, prove together.

One chain cannot see a row that moves from a page that is not read yet to one that is, if a row that
was read is removed meanwhile: the pages join as if nothing had happened. A second chain shows both:
it lacks the removed row, and has the one that moved.
"""

from typing import NamedTuple

import numpy as np

from pipelines.extract.chain import Chain
from pipelines.extract.pages import Rows, is_in

DECIDE = 3  # chains after which a row that the later ones do not show was removed


class Proven(NamedTuple):
    """The rows that chains prove, and how many rows the list had at the end of the newest one."""

    rows: Rows
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

    def is_proof(self, *, is_sure: bool) -> bool:
        """Return whether the chains prove the list.

        A row that the newest one does not show was removed, or moved to pages that it had read. If
        none is lost, two are enough; with `is_sure`, only if no row came before rows that the first
        had read. Else a third one decides.
        """
        if len(self._chains) < DECIDE - 1:
            return False
        before, last = self._chains[-2:]
        may_have_moved = is_sure and before.unexplained > 0
        if not len(last.lost(before)) and not may_have_moved:
            return True
        return len(self._chains) >= DECIDE

    def has_returned(self) -> bool:
        """Return whether the newest chain shows a row again that the one before had lost."""
        if len(self._chains) < DECIDE:
            return False
        first, before, last = self._chains[-DECIDE:]
        return bool(is_in(before.lost(first), last.rows()["mark"]).any())

    def proven(self) -> Proven:
        """Return what the chains prove.

        A row that existed throughout is in nearly every chain. So the rows of all count, each as
        the newest chain shows it; some may have been removed meanwhile.
        """
        last = self._chains[-1]
        rows = last.rows()
        for chain in self._chains[-2::-1]:
            older = chain.rows()
            rows = np.concatenate([rows, older[~is_in(older["mark"], rows["mark"])]])
        return Proven(rows, last.length + len(last.head), len(self._chains))
