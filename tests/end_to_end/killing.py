"""Syncs that are killed with -9 at random moments, and the run that goes on after each.

`python -m tests.end_to_end.killing COUNT` tries so many (`make kills`: 50); a few are in the suite.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from pipelines.cli.sandbox import Service
from tests.end_to_end.stand import Published, published
from tests.sandbox.running import sandboxed

PROGRAM = str(Path(sys.executable).with_name("partner-sync"))
# Some 30 requests that take their time: most of a run is reading.
LISTS = ("--rate=0", "--latency-ms=60", "--partners=400", "--usage=1500", "--billing=1500")
UNFINISHED = """
SELECT pages.scan, scans.stream, pages."offset" FROM pages JOIN scans USING (scan)
WHERE scans.run = (SELECT run FROM runs WHERE ended_at IS NULL ORDER BY begun_at DESC LIMIT 1)
"""
ASKED = """
SELECT stream, CAST(substr(query, instr(query, 'offset=') + 7) AS INTEGER)
FROM requests WHERE run = (SELECT run FROM runs ORDER BY begun_at DESC LIMIT 1)
AND stream IS NOT NULL
"""
Place = tuple[str, int]


@dataclass(frozen=True)
class Kill:
    """What one kill came to: how many pages were linked by then, and which were asked for again."""

    after: float
    linked: int
    again: frozenset[Place]
    same: bool


def kills(count: int, seed: int) -> Iterator[Kill]:
    """Kill as many syncs, each in a fresh home, and let a normal run follow."""
    chance = Random(seed)
    with sandboxed(*LISTS) as service, tempfile.TemporaryDirectory() as folder:
        service.environment["PARTNER_SYNC_WINDOW"] = "0"
        begun = time.monotonic()
        _sync(service, Path(folder) / "undisturbed").wait()
        whole = time.monotonic() - begun
        good = published(Path(folder) / "undisturbed")
        for number in range(count):
            yield _kill(
                service, Path(folder) / f"{number}", whole * (0.2 + 0.8 * chance.random()), good
            )


def _kill(service: Service, home: Path, after: float, good: Published) -> Kill:
    process = _sync(service, home)
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.wait()
    linked = set(_query(home, UNFINISHED))
    if _sync(service, home).wait() != 0:
        return Kill(after, len(linked), frozenset(), same=False)
    pages = {(stream, offset) for _scan, stream, offset in linked if offset}
    again = frozenset(pages & set(_query(home, ASKED)))
    return Kill(after, len(linked), again, same=published(home) == good)


def _sync(service: Service, home: Path) -> subprocess.Popen[bytes]:
    clean = {name: value for name, value in os.environ.items() if "PARTNER_SYNC" not in name}
    return subprocess.Popen(
        [PROGRAM, "sync"],
        env=clean | service.environment | {"PARTNER_SYNC_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _query(home: Path, query: str) -> list[Any]:
    """Ask a ledger; one that was not even begun holds nothing."""
    file = home / "state" / "state.sqlite"
    if not file.exists():
        return []
    with closing(sqlite3.connect(file)) as ledger:
        tables = ledger.execute("SELECT name FROM sqlite_master WHERE name = 'runs'").fetchall()
        return ledger.execute(query).fetchall() if tables else []


def main(arguments: Sequence[str]) -> int:
    """Print what each kill came to; return 1 where one did harm."""
    harm = 0
    for number, each in enumerate(kills(int(arguments[0]), seed=int(time.time()))):
        fine = each.same and not each.again
        harm += not fine
        words = "as if undisturbed" if fine else f"HARM: asked again {sorted(each.again)}"
        print(f"{number + 1}: killed after {each.after:.2f} s, {each.linked} pages: {words}")  # noqa: T201
    return 1 if harm else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
