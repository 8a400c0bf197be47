"""What landing costs: a million usage rows from the archive to the published file, two nights.

`python -m benchmarks.landing HOME MANIFEST` is the process whose time and memory are measured: it
folds one archived manifest and publishes. Not here: reading the list (reading), a sync (size).
"""

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks.machine import table
from pipelines.clock import SYSTEM
from pipelines.settings import Home
from pipelines.state import database
from pipelines.state.journal import LinkedPage
from pipelines.state.proof import Grade, Proof
from pipelines.warehouse.archive import Manifest, opened
from pipelines.warehouse.database import Work
from pipelines.warehouse.fold import Terms, fold
from pipelines.warehouse.publish import Edition, publish

ROWS, LIMIT, CHANGED = 1_000_000, 500, 100
BEGIN = datetime(2026, 1, 1, 2, tzinfo=UTC)
STATES = ("rated", "billed", "disputed")


@dataclass(frozen=True)
class Cost:
    """Of one night's process: CPU seconds of fold and publication, megabytes at the peak."""

    fold: float
    publish: float
    peak: float


def measure() -> str:
    """Fold and publish two nights, each in a process of its own; return a table."""
    rows = []
    with TemporaryDirectory() as folder:
        home = Home(Path(folder))
        home.prepare()
        for night in (0, 1, 2):
            size, file = archived(home, night)
            cost = _cost(home, file)
            rows.append(
                [
                    ("first", "second, 1 % changed", "third, nothing changed")[night],
                    f"{size / ROWS:.0f}",
                    f"{cost.fold:.1f} s",
                    f"{cost.publish:.1f} s",
                    f"{ROWS / (cost.fold + cost.publish):,.0f}",
                    f"{cost.peak:.0f} MB",
                ]
            )
    columns = ["night", "bytes a row", "fold, CPU", "publication, CPU", "rows a CPU second", "peak"]
    return table(columns, rows)


def archived(home: Home, night: int) -> tuple[int, str]:
    """Archive a night's pages with their manifest; return the size of the pages and its name."""
    archive, ended = opened(home), BEGIN + timedelta(days=night)
    pages, size = [], 0
    for position, body in enumerate(_bodies(min(night, 1))):
        size += len(body)
        digest, offset = archive.put(body), position * LIMIT
        page = LinkedPage(position, offset, LIMIT, LIMIT, digest, 200, None, ended, ended, {})
        pages.append(page)
    proof = Proof(
        Grade.COMPLETE,
        ROWS,
        len(pages),
        0,
        1,
        0,
        "usageId",
        inferred=False,
        begun_at=ended,
        ended_at=ended,
    )
    manifest = Manifest(
        "default",
        "usage",
        ended.date(),
        1,
        "run",
        f"scan {night}",
        "usageId",
        ended,
        ended,
        tuple(pages),
        proof=proof,
    )
    archive.write(manifest)
    return size, manifest.file


def _bodies(changed: int) -> Iterator[bytes]:
    for first in range(0, ROWS, LIMIT):
        rows = ",".join(_row(number, changed) for number in range(first, first + LIMIT))
        paging = {"limit": LIMIT, "offset": first, "has_more": first + LIMIT < ROWS}
        yield f'{{"data":[{rows}],"pagination":{json.dumps(paging)}}}'.encode()


def _row(number: int, changed: int) -> str:
    """Return a usage row: awkward prices and amounts, a nested period, an array of events."""
    chance = Random(number)  # noqa: S311 repeatable, nothing is secret
    amount = chance.randrange(10**7) + (changed if number % CHANGED == 0 else 0)
    day = f"2026-01-{chance.randrange(1, 29):02}T{chance.randrange(24):02}"
    events = ",".join(
        f'{{"kind":"{kind}","fee":{chance.randrange(1000) / 8},"at":"{day}:30:00Z"}}'
        for kind in ("peak", "overage")[: chance.randrange(3)]
    )
    return (
        f'{{"usageId":"{chance.getrandbits(96):024x}","partnerId":"{chance.getrandbits(48):012x}",'
        f'"organizationId":"{chance.getrandbits(48):012x}","quantity":{chance.randrange(10**6)},'
        f'"unitPrice":0.{chance.randrange(1, 10**6):06},'
        f'"amount":"{amount // 100}.{amount % 100:02}",'
        f'"currency":"EUR","period":{{"start":"{day}:00:00Z","end":"{day}:59:59Z"}},'
        f'"recordedAt":"{day}:59:59.{number % 10**6:06}Z","status":"{STATES[number % 3]}",'
        f'"sequence":{2**53 + number},"events":[{events}]}}'
    )


def _cost(home: Home, file: str) -> Cost:
    program = [sys.executable, "-m", "benchmarks.landing", str(home.root), file]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    return Cost(**json.loads(done.stdout))


def _land(home: Home, file: str) -> None:
    """Fold one manifest and publish; print what it cost."""
    import_module("pandas")  # pyarrow does with its first array: 0.4 s whatever the rows
    ledger, archive = database.connect(home.state), opened(home)
    work = Work(home, "120MB", print)
    with work.writing() as writer:
        began = _seconds()
        fold(writer, archive, archive.read(file), Terms(), SYSTEM)
        folded = _seconds()
    publish(work, ledger, Edition("run", 3), SYSTEM)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cost = Cost(round(folded - began, 2), round(_seconds() - folded, 2), peak)
    print(json.dumps(cost.__dict__))


def _seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    _land(Home(Path(sys.argv[1])), sys.argv[2])
