"""Lists that change while they are read: what changes, how often, where, and what lived through it.

Here: the order of a list's records and its changes, repeatable from the seed. Not here: pages
(paging), records (data). A list that nothing was ever changed in costs nothing; one that changes
keeps its order in memory, which is meant for lists of up to about 20,000 records.
"""

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal, get_args

from sandbox.data.listing import Listing
from sandbox.faults.kind import Fault
from sandbox.faults.orders import FIRST, OTHER, Memory, Row, View, show

Where = Literal["head", "tail", "ends", "anywhere"]
Order = Literal["stable", "newest-first", "shuffled"]
WHERE: tuple[Where, ...] = get_args(Where)
ORDERS: tuple[Order, ...] = get_args(Order)
REVISION = re.compile(rb'"revision":(\d+)')
NAME = re.compile(rb'"name":"')


GROWING = ("partners", "organizations", "usage", "billing")  # plans are a fixed table
LISTS = ("plans", *GROWING)
OPTION = re.compile(r"(?:([a-z]+):)?([a-z]+)=([0-9.]+)(?:@([a-z]+))?")


class UnchangeableError(ValueError):
    """A list cannot change as asked."""


@dataclass(frozen=True)
class Changes:
    """How many of each kind befall a list per page that is read of it, where, and its order.

    They happen before every so many-th page, those of the pages between at once; at the ``ends``
    means at the tail and the head in turn. ``newest-first`` turns the list round once,
    ``shuffled`` gives every page another order.
    """

    insert: float = 0.0
    delete: float = 0.0
    move: float = 0.0
    duplicate: float = 0.0
    update: float = 0.0
    every: int = 1
    where: Where = "anywhere"
    order: Order = "stable"


KINDS = tuple(field.name for field in fields(Changes) if field.type is float)
SHOWN = ("repeated", "conflicting", "hidden", "renamed")  # what faults made of a list's rows
NOT_LIVING = ("insert", "hidden", "renamed")


def read(texts: Iterable[str], order: str) -> tuple[tuple[str, Changes], ...]:
    """Read ``[LIST:]KIND=RATE[@WHERE]``, one a change; without LIST it is every list that can grow.

    Raises:
        UnchangeableError: a text is something else.
    """
    if order not in ORDERS:
        raise UnchangeableError(f"order {order} is not {' or '.join(ORDERS)}")
    wanted: dict[str, dict[str, Any]] = {name: {"order": order} for name in GROWING}
    for text in texts:
        parts = OPTION.fullmatch(text)
        name, kind, rate, where = parts.groups() if parts else (None, None, "", None)
        known = kind in KINDS and name in (None, *GROWING) and where in (None, *WHERE)
        if not known or rate.count(".") > 1 or not rate.strip("."):
            raise UnchangeableError(
                f"{text} is not [LIST:]KIND=RATE[@WHERE] with a list of {', '.join(GROWING)}, "
                f"a kind of {', '.join(KINDS)}, a rate per page and {' or '.join(WHERE)}"
            )
        given: dict[str, Any] = {str(kind): float(rate)} | ({"where": where} if where else {})
        for one in [name] if name else GROWING:
            wanted[one] |= given
    found = {name: Changes(**given) for name, given in wanted.items()}
    return tuple((name, changes) for name, changes in found.items() if changes != Changes())


class Scan:
    """What befell a list's records, by kind, since the first page after the scan was opened.

    The changes before that page belong to the state that the scan begins with.
    """

    def __init__(self) -> None:
        self.begun = False
        self.happened: dict[str, set[int]] = {kind: set() for kind in (*KINDS, *SHOWN)}
        self.served: dict[bytes, None] = {}  # in the order of their first page

    def note(self, kind: str, index: int) -> None:
        """Note a change to the record of an index."""
        if self.begun:
            self.happened[kind].add(index)


class Living:
    """One list. It changes before a page is read, never within one: every page is atomic."""

    def __init__(
        self, name: str, base: Listing, seed: int, faults: Callable[[], list[Fault]] = list
    ) -> None:
        self.name = name
        self._faults = faults
        self._base = base
        self._seed = seed
        self._scans: dict[int, Scan] = {}
        self.reset()

    def reset(self) -> None:
        """Begin again: every record in its place, nothing changes, no scan is open."""
        self.changes = Changes()
        self._chance = random.Random(f"{self._seed}/{self.name}")  # noqa: S311 - repeatable
        self._order: list[int] | None = None  # None: nothing was ever changed
        self._following = self._base.count  # the index of the next record to insert
        self._due = dict.fromkeys(KINDS, 0.0)
        self._pages = 0
        self._turn = False
        self._versions: dict[int, int] = {}
        self._memory = Memory()
        self._scans.clear()

    def configure(self, changes: Changes) -> None:
        """Change like this from the next page on.

        Raises:
            UnchangeableError: it cannot grow.
        """
        if changes.insert and (self._base.write is None or not self._base.count):
            raise UnchangeableError(f"{self.name} cannot grow")
        if changes.order == "newest-first" and self.changes.order != changes.order:
            self._order = self._indices()[::-1]
        self.changes = changes

    @property
    def count(self) -> int:
        """How many records there are."""
        return self._base.count if self._order is None else len(self._order)

    @property
    def rows(self) -> Callable[[int, int], list[bytes]]:
        """Those that exist in [start, stop), as JSON; nothing changes."""
        return self._listing(self._indices()).rows

    def now(self) -> Listing:
        """Let the changes that are due happen, and give the list as it is then."""
        faults = self._faults()
        if not faults and self._untouched:
            return self._seen(self._base, {})
        self._change()
        rows = [(index, FIRST) for index in self._shown()]
        view = View(
            f"{self._seed}/{self.name}",
            self._base.count,
            rows,
            self._memory,
            self._update,
            self._move,
        )
        if faults:
            show(view, faults)
        return self._seen(view.listing(self._written), view.told)

    @property
    def _untouched(self) -> bool:
        return self._order is None and self.changes == Changes() and not self._versions

    def _seen(self, seen: Listing, told: dict[str, set[int]]) -> Listing:
        for scan in self._scans.values():
            scan.begun = True
            for kind, indices in told.items():
                scan.happened[kind] |= indices
        return Listing(seen.count, partial(self._serve, seen.rows)) if self._scans else seen

    def _serve(self, rows: Callable[[int, int], list[bytes]], start: int, stop: int) -> list[bytes]:
        """Return the rows of a page; open scans keep each version of a record that is shown."""
        found = rows(start, stop)
        for scan in self._scans.values():
            scan.served.update(dict.fromkeys(found))
        return found

    def open(self, number: int) -> None:
        """Watch from the next page on what lives through it."""
        self._scans[number] = Scan()

    def close(self, number: int) -> dict[str, list[str]] | None:
        """End a scan: the keys of the records that lived through it, in order, and what happened.

        A complete reading contains every one that ``lived``; of the others it may have any. Those
        ``revised`` have other values than at the start, whenever they changed. ``served`` are all
        versions of records that were on a page, as JSON.
        """
        scan = self._scans.pop(number, None)
        if scan is None:
            return None
        there = dict.fromkeys(self._indices())
        happened = {kind: self.keys(sorted(found)) for kind, found in scan.happened.items()}
        others = set().union(*(scan.happened[kind] for kind in NOT_LIVING))
        revised = self.keys(index for index in there if self._versions.get(index))
        lived = self.keys(index for index in there if index not in others)
        served = [row.decode() for row in scan.served]
        return {"lived": lived, **happened, "revised": revised, "served": served}

    def keys(self, indices: Iterable[int]) -> list[str]:
        """Give the keys of records: the first member of each."""
        return [self._row(index).split(b'"', 4)[3].decode() for index in indices]

    def _indices(self) -> list[int]:
        return list(range(self._base.count)) if self._order is None else self._order

    def _shown(self) -> list[int]:
        indices = self._indices()
        if self.changes.order == "shuffled":
            return self._chance.sample(indices, len(indices))
        return indices

    def _listing(self, indices: list[int]) -> Listing:
        return Listing(
            len(indices), lambda start, stop: [self._row(index) for index in indices[start:stop]]
        )

    def _row(self, index: int) -> bytes:
        write = self._base.write if index >= self._base.count else None
        row = (write or self._base.rows)(index, index + 1)[0]
        version = self._versions.get(index, 0)
        return revised(row, version) if version else row

    def _written(self, row: Row) -> bytes:
        index, which = row
        return revised(self._row(index), 1) if which == OTHER else self._row(index)

    def _update(self, index: int) -> None:
        self._versions[index] = self._versions.get(index, 0) + 1
        self._note("update", index)
        self._note("move", index)

    def _move(self, index: int, place: int) -> None:
        order = self._order = self._indices()
        order.remove(index)
        order.insert(place, index)
        self._note("move", index)

    def _change(self) -> None:
        self._pages += 1
        now = not self._pages % self.changes.every
        for kind in KINDS:
            self._due[kind] += getattr(self.changes, kind)
            while now and self._due[kind] >= 1:
                self._due[kind] -= 1
                self._happen(kind)

    def _happen(self, kind: str) -> None:
        order = self._order = self._indices()
        if kind == "insert":
            self._put(self._following)
            self._note(kind, self._following)
            self._following += 1
            return
        if not order:
            return
        doomed = kind == "delete"  # only there does ``where`` say which record is meant
        place = max(0, self._place() - 1) if doomed else self._chance.randrange(len(order))
        index = order[place]
        if kind in ("delete", "move"):
            del order[place]
        if kind in ("move", "duplicate"):
            self._put(index)
        if kind == "update":
            self._versions[index] = self._versions.get(index, 0) + 1
        if kind != "delete" or index not in order:
            self._note(kind, index)

    def _put(self, index: int) -> None:
        self._indices().insert(self._place(), index)

    def _place(self) -> int:
        size = len(self._indices())
        self._turn = not self._turn
        places = {"head": 0, "tail": size, "ends": size * self._turn}
        return places.get(self.changes.where, self._chance.randrange(size + 1))

    def _note(self, kind: str, index: int) -> None:
        for scan in self._scans.values():
            scan.note(kind, index)


def revised(row: bytes, version: int) -> bytes:
    """Write a record's later version: a higher revision, or else another name."""
    if REVISION.search(row):
        return REVISION.sub(lambda found: b'"revision":%d' % (int(found[1]) + version), row)
    return NAME.sub(b'"name":"%d. ' % version, row)
