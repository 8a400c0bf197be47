"""Random sequences of commands and mishaps, beside a model of what versions and scans must be."""

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from sqlalchemy import select

from pipelines.app.maintenance import verify_files
from pipelines.app.nightly import build_with_books, rebuild_with_books
from pipelines.core.errors import PartnerSyncError
from pipelines.metadata.scans import SET_ASIDE, ScanStatus, held_scans
from pipelines.metadata.tables import Run
from pipelines.versions import version_scans
from pipelines.versions.change import change_versions
from pipelines.versions.prune import prune
from pipelines.versions.rollback import roll_back
from tests.effort import EFFORT
from tests.versions.homes import BEGIN, DAY, Reading, Stores, add_run, read

LISTS = [("acme", "usage"), ("zen", "billing")]
ROWS = "SELECT _connection, '{0}', _key, v, _scan_id, _end_reason FROM history.{0}"
ACTIONS = {"read": 90, "build": 12, "rebuild": 21, "decide": 27, "roll_back": 27, "prune": 18}
ACTIONS |= {"damage": 12, "restore": 9, "lose_link": 3, "step_clock": 1}
Scans = frozenset[str]
NONE: Scans = frozenset()


class Known(NamedTuple):
    """A scan; sorted by the time when it began."""

    began: float
    scan_id: str
    about: tuple[str, str]
    rows: dict[str, int]
    complete: bool
    path: Path


def refuse(what: Callable[..., Any], *arguments: Any) -> None:
    with pytest.raises(PartnerSyncError):
        what(*arguments)


class Home:
    def __init__(self, stores: Stores) -> None:
        self.stores, self.chance = stores, Random(0)
        self.scans: dict[str, Known] = {}
        # Nobody may see a barred scan without a decision.
        self.barred, self.approved, self.failed = set[str](), set[str](), set[str]()
        self.pruned, self.running = set[str](), set[str]()  # of runs that have not ended
        self.held: dict[int | None, Scans] = {None: NONE}  # by version, deleted ones too
        self.built = dict[int | None, datetime]()
        self.number: int | None = None  # of the published version
        self.checked: int | None = None  # of the version whose rows were compared
        self.backups: dict[Path, bytes] = {}  # of files that are lost or damaged

    def ordered(self, scans: Iterable[str]) -> list[Known]:
        return sorted(self.scans[each] for each in scans)

    def history(self, scans: Iterable[str]) -> list[list[Any]]:  # rows as in ROWS
        history: list[list[Any]] = []
        for scan in self.ordered(scans):
            now = {row[2]: row for row in history if row[:2] == [*scan.about] and not row[-1]}
            for key in now.keys() - scan.rows.keys() if scan.complete else ():
                now[key][-1] = "deleted"
            for key, value in scan.rows.items():
                if key in now and now[key][3] != value:
                    now[key][-1] = "changed"
                if key not in now or now[key][-1]:
                    history.append([*scan.about, key, value, scan.scan_id, None])
        return history

    def current(self, scans: Iterable[str], about: tuple[str, str]) -> dict[str, int]:
        rows = (row for row in self.history(scans) if (*row[:2],) == about and not row[-1])
        return {key: value for _, _, key, value, *_ in rows}

    def readable(self) -> dict[int | None, Scans]:
        files = (each for each in self.stores.warehouse.versions() if each.path.stat().st_size)
        return {each.number: self.held[each.number] for each in files}

    def loaded(self) -> Scans:
        return NONE.union(*self.readable().values())

    def known(self) -> Scans:
        held = self.readable()
        return NONE.union(*[held[each] for each in held if (each or 0) <= (self.number or 0)][-1:])

    def keeper(self) -> int | None:
        held, known = self.readable(), self.known()
        able = [each for each in held if known >= held[each] >= self.pruned]
        return able[0] if able and self.pruned else None

    def is_sound(self, number: int | None) -> bool:
        files = [each for each in self.stores.warehouse.versions() if each.path not in self.backups]
        return number in {None, *(each.number for each in files)}

    def is_late(self, scan: Known, base: Scans) -> bool:
        return any(each.about == scan.about and each > scan for each in self.ordered(base))

    def buildable(self, base: Scans) -> list[str]:
        out = base | self.barred | self.failed | self.pruned | (self.running - self.approved)
        found = self.ordered(self.scans.keys() - out)
        return [each.scan_id for each in found if not self.is_late(each, base)]

    def load(self, base: Scans, scans: Iterable[str], known: Scans = NONE) -> Scans:
        """Return what a version holds in which scans were loaded behind those of another one."""
        for scan in self.ordered(scans):
            before, itself = self.current(base, scan.about), {scan.scan_id}
            gone = before.keys() - scan.rows.keys() if scan.complete else ()
            self.failed -= itself
            if scan.path in self.backups:
                self.failed |= itself
                self.approved -= itself
            elif len(gone) > 0.1 * len(before) and not itself & (known | self.approved):
                self.barred |= itself
            else:
                base |= itself
        return base

    def read(self) -> None:
        about, new = self.chance.choice(LISTS), len(self.scans)
        before = self.current(self.held[self.number], about) or {f"k{n}": 0 for n in range(10)}
        rows = before | {f"k{new + 10}": 0} | {self.chance.choice([*before]): new}
        gone = self.chance.choice([0, 0, 1, len(rows) - 2])  # the last is more than a guard allows
        rows = dict([*rows.items()][gone:])
        records = [{"id": key, "v": value} for key, value in rows.items()]
        complete = self.chance.random() < 0.75
        self.stores.clock.now += DAY / 24
        is_running = self.chance.random() < 0.15
        run_id = add_run(self.stores, None, connection=about[0]) if is_running else None
        reading = Reading(records, about[1], about[0], complete=complete, page_size=50)
        scan_id, began = read(self.stores, reading, run_id), self.stores.clock.now.timestamp()
        self.running |= {scan_id} if is_running else set()
        path = self.stores.archive.folder.joinpath(*about, f"{scan_id}.jsonl.zst")
        self.scans[scan_id] = Known(began, scan_id, about, rows, complete, path)
        if self.chance.random() < 0.8:
            self.build()

    def publish(self, scans: Scans, what: Callable[[Stores], Any], *, is_new: bool) -> None:
        keeper = self.keeper()
        before = [*self.readable()][::-1]
        assert what(self.stores).is_new == is_new
        if not is_new:
            return
        self.number = self.stores.warehouse.require_published().number
        self.held[self.number], self.built[self.number] = scans, self.stores.clock.now
        older = [each for each in before if self.held[each] <= scans]
        limit = self.stores.settings.keep_versions
        kept = {*self.readable()}
        assert {*[self.number, *older][:limit]} <= kept
        assert all(self.held[each] <= scans for each in kept)
        assert keeper is None or keeper in kept or not self.held[keeper] <= scans
        assert len(kept) <= limit + 2  # with the checkpoint and the version of the books

    def build(self) -> None:
        base = self.held[self.number]
        is_readable = self.number in {None, *self.readable()}
        scans = self.buildable(base) if is_readable else ["unknown"]
        if scans and not self.is_sound(self.number):
            refuse(build_with_books, self.stores)
        else:
            loaded = self.load(base, scans)
            self.publish(loaded, build_with_books, is_new=loaded != base)

    def rebuild(self) -> None:
        known, keeper = self.known(), self.keeper()
        base, is_based = self.held[keeper], not self.pruned or (keeper and self.is_sound(keeper))
        if is_based:
            self.failed.clear()
        if not is_based or any(self.scans[each].path in self.backups for each in known - base):
            refuse(rebuild_with_books, self.stores)
        else:
            loaded = self.load(base, {*self.buildable(known), *known - base}, known)
            self.publish(loaded, rebuild_with_books, is_new=bool(keeper) or loaded != base)

    def decide(self) -> None:
        with self.stores.metadata.transaction() as session:
            for run in session.scalars(select(Run)):
                run.ended_at = self.stores.clock.now
            held = sorted(each.scan_id for each in held_scans(session))
        self.running.clear()
        for scan_id in self.chance.sample(held, min(1, len(held))):
            status = self.chance.choice([ScanStatus.REJECTED, *[ScanStatus.APPROVED] * 2])
            self.stores.set_status(scan_id, status, "checked")
            if status == ScanStatus.APPROVED:
                self.barred.remove(scan_id)
                self.approved.add(scan_id)
                self.build()

    def roll_back(self) -> None:
        readable = self.readable()
        number = self.chance.choice([None, self.chance.choice([*self.held]), *readable])
        target, seen = number, readable.get(self.number)
        if number is None and self.number:
            older = [n for n in readable if n and n < self.number]
            target = max((n for n in older if seen is None or readable[n] < seen), default=None)
        if target is None or not self.is_sound(target):
            refuse(roll_back, self.stores, number, "wrong")
            return
        before = self.stores.statuses()
        roll_back(self.stores, number, "wrong")
        self.number, after = target, self.stores.statuses()
        self.barred |= self.loaded() - self.held[target] - self.pruned
        self.barred -= self.held[target]
        self.approved -= self.barred
        self.failed -= self.barred
        assert {after[each] for each in self.barred if before[each] == "rejected"} <= {"rejected"}

    def prune(self) -> None:
        self.restore()
        before = self.stores.clock.now + self.chance.randint(-12, 2) * DAY / 2
        statuses, files = self.stores.statuses(), self.readable()
        unpruned = self.scans.keys() - self.pruned
        dry, done = (prune(self.stores, before, dry_run=dry) for dry in (True, False))
        assert dry == done
        newest = {each.about: each.scan_id for each in self.ordered(unpruned)}
        old = {each for each in unpruned if self.scans[each].began < before.timestamp()}
        old.difference_update(newest.values())
        after = {each for each in files if self.built[each] >= before} | {self.number}
        loaded = frozenset(self.scans).intersection(*(self.held[each] for each in after))
        self.pruned |= old & loaded
        for each in old - NONE.union(*(self.held[each] for each in after)):
            if statuses[each] == "rejected" or self.is_late(self.scans[each], loaded):
                del self.scans[each]
        for found in (self.barred, self.approved, self.failed, self.running):
            found.intersection_update(self.scans.keys() - self.pruned)
        assert self.readable().keys() | {None} == after | {None}
        assert not self.pruned or self.keeper()

    def damage(self) -> None:
        files = [self.scans[each].path for each in self.scans.keys() - self.pruned]
        files += [each.path for each in self.stores.warehouse.versions()] * 2
        files = sorted(each for each in files if each not in self.backups)
        for file in self.chance.sample(files, min(1, len(files))):
            content = self.backups[file] = file.read_bytes()
            file.chmod(0o644)
            file.write_bytes(self.chance.choice([b"", content + b"x"]))
            if self.chance.random() < 0.3:
                file.unlink()

    def restore(self) -> None:
        for file, content in self.backups.items():
            file.unlink(missing_ok=True)
            file.write_bytes(content)
        self.backups.clear()
        with change_versions(self.stores):
            sound = [each or 0 for each, held in self.readable().items() if not held & self.barred]
            self.number = self.number or max(sound, default=None)
        assert verify_files(self.stores)["damaged"] == []

    def lose_link(self) -> None:
        self.stores.warehouse.home.link.unlink(missing_ok=True)
        self.number = None
        self.restore()

    def step_clock(self) -> None:
        self.stores.clock.now += (100 if self.stores.clock.now < BEGIN else -100) * DAY

    def check(self) -> None:
        published, statuses = self.stores.warehouse.published(), self.stores.statuses()
        assert (published and published.number) == self.number
        assert statuses.keys() == self.scans.keys() >= self.loaded()
        assert self.barred == {each for each, status in statuses.items() if status in SET_ASIDE}
        for name in ("approved", "failed", "pruned"):
            assert getattr(self, name) == {each for each in statuses if statuses[each] == name}
        newest = {each.about: each.scan_id for each in self.ordered(statuses.keys() - self.failed)}
        with self.stores.metadata.transaction() as session:
            held = {each.scan_id for each in held_scans(session)}
        assert held == {each for each in newest.values() if statuses[each] == "held"}
        rows = {each for each, status in self.stores.versions().items() if status != "deleted"}
        assert self.backups or rows == self.readable().keys()
        if self.number != self.checked and self.number in self.readable():
            self.checked, seen = self.number, self.held[self.number]
            streams = {self.scans[each].about[1] for each in seen}
            query = " UNION ALL ".join(ROWS.format(each) for each in streams)
            assert {*self.stores.rows(query)} == {tuple(row) for row in self.history(seen)}
            assert version_scans.loaded_scans(self.stores, published) == seen


def script(seed: int, steps: int = 60) -> list[tuple[str, int]]:
    chance = Random(seed)
    names = chance.choices([*ACTIONS], [*ACTIONS.values()], k=steps)
    return [(name, chance.randrange(10**6)) for name in names]


def perform(stores: Stores, steps: Iterable[tuple[str, int]], keep_versions: int) -> None:
    stores.configure()
    home = Home(stores.changed(keep_versions=keep_versions))
    for name, seed in [*steps, ("restore", 0)]:
        home.chance = Random(seed)
        getattr(home, name)()
        home.check()


SEEDS = range(8, 8 + 4 * EFFORT)  # every fourth one is not slow


@pytest.mark.parametrize(
    "seed",
    [
        *(pytest.param(seed, marks=pytest.mark.long) for seed in SEEDS[::4]),
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in sorted({18, *SEEDS}) if seed % 4),
    ],
)
def test_nothing_is_lost_and_nothing_comes_back(stores: Stores, seed: int) -> None:
    perform(stores, script(seed), 1 + seed % 4)
