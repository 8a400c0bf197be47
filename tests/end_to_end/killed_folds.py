"""Folds and publications that are killed with -9 at random moments, and what analysts open then.

`python -m tests.end_to_end.killed_folds COUNT` tries so many (`make kills`: 50); a few are in the
trials. Every night changes every row, so that a file is of one whole night or plainly of none.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import duckdb

from benchmarks import archived
from pipelines import run
from pipelines.run import Session
from pipelines.state import journal
from tests.end_to_end.killable import killed

SELF = "tests.end_to_end.killed_folds"
STREAMS = ("things", "others")
NIGHTS, ROWS = 4, 4_000
SEEN = """
SELECT (SELECT count(*) FROM current.things), (SELECT min(night) FROM current.things),
       (SELECT max(night) FROM current.things), (SELECT count(*) FROM current.others),
       (SELECT min(night) FROM current.others), (SELECT max(night) FROM current.others),
       (SELECT count(*) FROM current.things__parts WHERE night = (SELECT min(night) FROM
        current.things)), (SELECT count(*) FROM current.things__parts)
"""
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Kill:
    """What analysts open after a kill: the night, None where nothing was published yet."""

    after: float
    night: int | None
    whole: bool


def work(home: Path) -> None:
    """Fold and publish each night that is not published yet, one after the other."""
    with run.open(archived.settings(home, STREAMS)) as session:
        print("open", flush=True)  # noqa: T201 heard by who kills
        for number in range(1, NIGHTS + 1):
            lacking = [each for each in STREAMS if _read(session, each) < number]
            for stream in lacking:
                archived.night(session, stream, number, _records(number))
            (order,) = archived.orders(session, STREAMS)
            run.fold(session, order)
            run.publish(session, [order])


def _read(session: Session, stream: str) -> int:
    return len(journal.manifests(session.ledger, stream))


def _records(number: int) -> list[str]:
    parts = [{"night": number}]
    return [json.dumps({"id": row, "night": number, "parts": parts}) for row in range(ROWS)]


def kills(count: int, seed: int) -> Iterator[Kill]:
    """Kill as many times; a home that has come to its last night is begun anew."""
    chance = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        begun = time.monotonic()
        killed(SELF, "work", home)
        whole, last = time.monotonic() - begun, NIGHTS
        for _number in range(count):
            if last == NIGHTS:
                shutil.rmtree(home)
            after = whole * chance.random() / NIGHTS * 2
            killed(SELF, "work", home, after=after)
            seen = _seen(home, after)
            last = seen.night or 0
            yield seen
        killed(SELF, "work", home)
        yield _seen(home, 0)


def _seen(home: Path, after: float) -> Kill:
    """Say which night analysts open, and whether it is whole."""
    link = home / "warehouse.duckdb"
    if not link.exists():
        return Kill(after, None, not link.is_symlink())
    with duckdb.connect(link, read_only=True) as reader:
        found: Row = reader.execute(SEEN).fetchone() or ()
    night = int(found[1])
    return Kill(after, night, found == (ROWS, night, night, ROWS, night, night, ROWS, ROWS))


def main(arguments: Sequence[str]) -> int:
    """Print what each kill came to; return 1 where one did harm."""
    if arguments[0] == "work":
        work(Path(arguments[1]))
        return 0
    harm = 0
    for number, each in enumerate(kills(int(arguments[0]), seed=int(time.time()))):
        harm += not each.whole
        seen = "nothing yet" if each.night is None else f"night {each.night}"
        words = f"{seen}, whole" if each.whole else f"HARM: {seen}"
        print(f"{number + 1}: killed after {each.after:.2f} s: {words}")  # noqa: T201
    return 1 if harm else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
