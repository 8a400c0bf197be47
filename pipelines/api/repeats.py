"""Rows that an anchored reading saw again: in the list twice, or moved while it was read.

A key that was seen again out of order is a repeated row only if one answer shows it twice, or if
it is still at its old place, among the same rows, after it was seen at the new one. Otherwise the
row moved. Old places that fit on one page are checked with one request. Not here: what follows
from a row that moved (chain, passes).
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from pipelines.api.stitch import Look, Stitch

Reread = Callable[[int], Awaitable[Look]]


@dataclass(frozen=True)
class _Pair:
    """Two places of a key, in the chain's order, and the offsets at which they were read."""

    mark: bytes
    old: int
    first: int
    last: int
    near: bool

    @property
    def end(self) -> int:
        """The offset behind the places that one page has to show."""
        return (self.last if self.near else self.first) + 1


@dataclass
class Repeats:
    """The keys that a chain saw again.

    `suspects` were out of order. `twice` were more than once on one page, with the largest number.
    """

    stitch: Stitch
    suspects: set[bytes] = field(default_factory=set)
    twice: dict[bytes, int] = field(default_factory=dict)
    far: list[bytes] = field(default_factory=list)  # with places that do not fit on one page

    def __bool__(self) -> bool:
        """Return whether any key was seen again."""
        return bool(self.suspects or self.twice)

    def meet(self, look: Look) -> int:
        """Record keys that a page shows out of order or twice; return how many are out of order."""
        displaced = self.stitch.displaced(look)
        self.suspects.update(each for row in displaced if (each := look.marks[row]))
        for each, times in look.times.items():
            if times > 1:
                self.twice[each] = max(times, self.twice.get(each, 0))
        return len(displaced)

    @property
    def rows(self) -> int:
        """How many rows of the chain repeat another one."""
        keys = {*self.suspects, *self.twice}
        return sum(max(0, len(places) - 1) for places in self._places(keys).values())

    @property
    def moved(self) -> bool:
        """Whether a key was out of order that the chain has only once: its row moved."""
        return any(len(each) <= 1 for each in self._places(self.suspects).values())

    async def proven(self, limit: int, reread: Reread) -> bool:
        """Return whether every key seen again is a repeated row; stop at the first move."""
        pairs = self._pairs(self._places(self.suspects), limit)
        while pairs:
            begin = max(0, pairs[0].first - 1)
            here = [pair for pair in pairs if pair.end <= begin + limit]
            if not here or not self._stand(await reread(begin), here):
                return False
            pairs = [pair for pair in pairs if pair.end > begin + limit]
        return True

    def places(self) -> list[tuple[int, int]]:
        """Return the page (by number) and row of each far repeat's last place."""
        found = []
        for places in self._places(self.far).values():
            for place in places[1:]:
                link = self.stitch.link(place)
                if link:
                    found.append((link.number, place - link.start))
        return found

    def _places(self, marks: Iterable[bytes]) -> dict[bytes, list[int]]:
        wanted = sorted(marks)
        found = self.stitch.seen.find(wanted)
        return {each: self.stitch.joined(at) for each, at in zip(wanted, found, strict=True)}

    def _pairs(self, places: dict[bytes, list[int]], limit: int) -> list[_Pair]:
        """Return the pairs to check, by offset, without those that one page has already shown."""
        pairs = []
        for each, found in places.items():
            shown = self.twice.get(each, 1)
            for old, new in pairwise(found):
                first, last = self._offset(old), self._offset(new)
                near = 0 <= last - first < limit - 1
                if near and shown >= len(found):
                    continue
                pairs.append(_Pair(each, old, first, last, near))
                if not near and each not in self.far:
                    self.far.append(each)
        return sorted(pairs, key=lambda pair: pair.first)

    def _offset(self, place: int) -> int:
        link = self.stitch.link(place)
        return link.offset + place - link.start if link else 0

    def _stand(self, look: Look, pairs: list[_Pair]) -> bool:
        """Return whether a page shows near pairs twice, and far ones at their old place."""
        times = look.times
        if any(times[pair.mark] < (2 if pair.near else 1) for pair in pairs):
            return False
        old = {pair.mark: pair.old for pair in pairs if not pair.near}
        order = []
        for each, known in zip(look.marks, look.known, strict=True):
            found = self.stitch.joined(known)
            if each in old and times[each] == 1:
                order.append(old[each])
            elif each and len(found) == 1 and times[each] == 1:
                order.append(found[0])
        return all(first < second for first, second in pairwise(order))
