"""Every key that a scan has read, and where: 16 bytes a row.

A key is its 96-bit digest: 64 bits to search by, 32 to confirm. Where two keys agree in the first
and not in the second they are two; in both they agree once in 10^17 scans of a million rows. Not
here: what the places mean (stitch).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

SIZE = 12  # bytes of a mark
RECENT = 4_096  # rows kept as they came: short scans never need more
LARGEST = 131_072  # rows of one sorted run: what merging may double for a moment
MARKS = np.dtype([("digest", "<u8"), ("check", "<u4")])
Places = tuple[int, ...]


def mark(key: bytes) -> bytes:
    """Return what stands for a key: its digest."""
    return blake2b(key, digest_size=SIZE).digest()


@dataclass(frozen=True)
class _Run:
    """Rows sorted by digest, as columns."""

    digests: npt.NDArray[np.uint64]
    checks: npt.NDArray[np.uint32]
    places: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.digests)


def _sorted(
    digests: npt.NDArray[np.uint64],
    checks: npt.NDArray[np.uint32],
    places: npt.NDArray[np.uint32],
) -> _Run:
    order = np.argsort(digests, kind="stable")
    return _Run(digests[order], checks[order], places[order])


@dataclass
class Seen:
    """Marks by place, found again by what they are; a mark may stand in several places."""

    _recent: dict[bytes, Places] = field(default_factory=dict)
    _runs: list[_Run] = field(default_factory=list)

    def __len__(self) -> int:
        """Count the rows."""
        return sum(map(len, self._recent.values())) + sum(map(len, self._runs))

    def add(self, marks: Iterable[tuple[int, bytes]]) -> None:
        """Add marks with their places."""
        for place, each in marks:
            self._recent[each] = (*self._recent.get(each, ()), place)
        if len(self._recent) >= RECENT:
            self._settle()

    def find(self, marks: Sequence[bytes | None]) -> list[Places]:
        """Return for each mark the places where it stands; None stands nowhere."""
        found = [() if each is None else self._recent.get(each, ()) for each in marks]
        if self._runs:
            rows = np.array([row for row, each in enumerate(marks) if each is not None], np.uint32)
            digests, checks = _columns(each for each in marks if each is not None)
            order = np.argsort(digests)  # what is looked up in order stays in the processor's cache
            wanted = _Run(digests[order], checks[order], rows[order])
            for run in self._runs:
                _search(run, wanted, found)
        return found

    def _settle(self) -> None:
        """Move the recent rows into a run; merge runs of a size, so that there are few."""
        pairs = [(each, place) for each, places in self._recent.items() for place in places]
        digests, checks = _columns(each for each, _place in pairs)
        places = np.array([place for _each, place in pairs], np.uint32)
        self._runs.append(_sorted(digests, checks, places))
        self._recent = {}
        while len(self._runs) > 1 and self._mergeable(*self._runs[-2:]):
            second, first = self._runs.pop(), self._runs.pop()
            self._runs.append(
                _sorted(
                    np.concatenate([first.digests, second.digests]),
                    np.concatenate([first.checks, second.checks]),
                    np.concatenate([first.places, second.places]),
                )
            )

    @staticmethod
    def _mergeable(older: _Run, newer: _Run) -> bool:
        return len(older) <= 2 * len(newer) and len(older) + len(newer) <= LARGEST


def _columns(marks: Iterable[bytes]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
    columns = np.frombuffer(b"".join(marks), MARKS)
    return np.ascontiguousarray(columns["digest"]), np.ascontiguousarray(columns["check"])


def _search(run: _Run, wanted: _Run, found: list[Places]) -> None:
    """Add to what was found the places of a run; the places of `wanted` are those in `found`."""
    last = len(run) - 1
    at = np.minimum(np.searchsorted(run.digests, wanted.digests), last)
    while len(at):
        same = run.digests[at] == wanted.digests
        hits = same & (run.checks[at] == wanted.checks)
        for row, place in zip(
            wanted.places[hits].tolist(), run.places[at[hits]].tolist(), strict=True
        ):
            found[row] = (*found[row], place)
        same &= at < last  # equals stand side by side
        at = at[same] + 1
        wanted = _Run(wanted.digests[same], wanted.checks[same], wanted.places[same])
