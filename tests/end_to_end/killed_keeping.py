"""Replays, retentions and erasures that are killed with -9, and the run that goes on after each.

`python -m tests.end_to_end.killed_keeping COUNT` tries so many of each kind (`make kills`: 50); a
few are in the trials. After a kill analysts open the old tables or the new ones, each whole, and
the same verb run again comes to what it comes to undisturbed.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random

from benchmarks import archived
from pipelines import run
from pipelines.clock import SYSTEM
from pipelines.run import Act, Session, Sought
from pipelines.settings import Home
from pipelines.warehouse import traces
from tests.end_to_end.killable import killed
from tests.run.contents import Content, content, opened

SELF = "tests.end_to_end.killed_keeping"
STREAMS = ("things", "others")
NIGHTS, ROWS, KEPT = 4, 600, 2
GONE = "partner-000017"


def replay(session: Session) -> None:
    """Fold everything again and publish it."""
    run.replay(session, archived.FIRST.date() + timedelta(days=NIGHTS))
    run.publish_folded(session)


def retain(session: Session) -> None:
    """Drop the older readings."""
    run.retain(session, KEPT, "ann")


def erase(session: Session) -> None:
    """Erase a partner."""
    act = Act("ann", SYSTEM.now(), "request 7")
    run.erase(session, Sought(GONE), act, lambda _done, _all: None)


VERBS: dict[str, Callable[[Session], None]] = {"replay": replay, "retain": retain, "erase": erase}


@dataclass(frozen=True)
class Kill:
    """What a kill came to: what analysts open then, and what the verb came to when run again."""

    verb: str
    after: float
    harm: str


@dataclass(frozen=True)
class Homes:
    """A home of some nights, and what it is before and after a verb that nobody disturbs."""

    folder: Path
    verb: str
    before: Content
    after: Content
    files: frozenset[str]
    seconds: float


def kills(verb: str, count: int, seed: int) -> Iterator[Kill]:
    """Kill a verb as many times, each time in a copy of one home."""
    chance = Random(seed)
    with tempfile.TemporaryDirectory() as name:
        homes = _homes(Path(name), verb)
        for number in range(count):
            after = homes.seconds * chance.random()
            yield Kill(verb, after, _harm(homes, Path(name) / f"{number}", after))


def _homes(folder: Path, verb: str) -> Homes:
    """Make the home that is copied; let the verb go through once."""
    home, other = folder / "home", folder / "undisturbed"
    with run.open(archived.settings(home, STREAMS)) as session:
        for number in range(1, NIGHTS + 1):
            for stream in STREAMS:
                archived.night(session, stream, number, _records(number))
        (order,) = archived.orders(session, STREAMS)
        run.fold(session, order)
        run.publish(session, [order])
        if verb == "erase":  # of a base snapshot too
            run.retain(session, KEPT, "ann")
        before = content(session)
    shutil.copytree(home, other, symlinks=True)
    begun = time.monotonic()
    killed(SELF, verb, other)
    seconds = time.monotonic() - begun - _start()
    with run.open(archived.settings(other, STREAMS)) as session:
        return Homes(folder, verb, before, content(session), _files(other), max(seconds, 0.2))


def _start() -> float:
    """Return how long a process takes until its home is open."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "import pipelines.cli.app"], check=True)
    return time.monotonic() - begun


def _records(number: int) -> Iterator[str]:
    for row in range(ROWS):
        partner = GONE if row % 50 == 0 else f"partner-{row:06}"
        record = {"id": row, "night": number if row % 3 else 0, "partner": partner}
        yield json.dumps(record | {"parts": [{"of": partner}] * (row % 2)})


def _harm(homes: Homes, home: Path, after: float) -> str:
    """Kill the verb in a copy, look, run it again, look; say what is wrong, nothing if all is well.

    The copy goes, or fifty of them would fill a disk.
    """
    shutil.copytree(homes.folder / "home", home, symlinks=True)
    try:
        killed(SELF, homes.verb, home, after=after)
        if opened(Home(home)) not in (homes.before, homes.after):
            return "analysts open something that was never published"
        killed(SELF, homes.verb, home)
        return _differs(homes, home)
    finally:
        shutil.rmtree(home)


def _differs(homes: Homes, home: Path) -> str:
    if homes.verb == "erase" and (left := list(traces.files(home, GONE))):
        return f"the partner is still in {left}"
    if opened(Home(home)) != homes.after:
        return "the published tables are others than undisturbed"
    if faults := _faults(home):
        return faults
    if _files(home) != homes.files:
        return f"other files than undisturbed: {sorted(_files(home) ^ homes.files)}"
    if homes.verb != "retain":  # the others have built everything again themselves
        return ""
    with run.open(archived.settings(home, STREAMS)) as session:
        run.again(session)
        return "" if content(session) == homes.after else "built again it is something else"


def _faults(home: Path) -> str:
    with run.open(archived.settings(home, STREAMS)) as session:
        return "; ".join(map(str, run.verify(session, lambda _news: None).faults))


def _files(home: Path) -> frozenset[str]:
    """Return the files of a home but those that are numbered by what was published and done."""
    folders = ("archive/pages", "archive/manifests", "work")
    every = [file for each in folders for file in (home / each).rglob("*") if file.is_file()]
    return frozenset(str(file.relative_to(home)) for file in every)


def main(arguments: Sequence[str]) -> int:
    """Print what each kill came to; return 1 where one did harm."""
    if arguments[0] in VERBS:
        with run.open(archived.settings(Path(arguments[1]), STREAMS)) as session:
            print("open", flush=True)  # noqa: T201 heard by who kills
            VERBS[arguments[0]](session)
        return 0
    harm = 0
    for verb in VERBS:
        for number, each in enumerate(kills(verb, int(arguments[0]), seed=int(time.time()))):
            harm += bool(each.harm)
            words = f"HARM: {each.harm}" if each.harm else "as if undisturbed"
            print(f"{verb} {number + 1}: killed after {each.after:.2f} s: {words}")  # noqa: T201
    return 1 if harm else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
