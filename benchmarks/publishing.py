"""Publications under readers who never rest, and one who never closes what it opened.

Every publication brings another night of two small lists, beside a list of a million rows. A read
is torn where the tables of one file are not of one night.
"""

import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import duckdb

from benchmarks import archived
from benchmarks.machine import table
from pipelines import run
from pipelines.run import Session, Watch

ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
PUBLICATIONS = int(os.environ.get("BENCH_PUBLICATIONS", "100"))
READERS = 4
ALONE = 5  # publications without a reader, to compare with
STREAMS = ("big", "left", "right")
READ = """
SELECT (SELECT min(night) FROM current."left"), (SELECT max(night) FROM current."left"),
       (SELECT min(night) FROM current."right"), (SELECT max(night) FROM current."right"),
       (SELECT count(*) FROM current.big), (SELECT max(version) FROM meta.freshness)
"""


@dataclass(frozen=True)
class Read:
    """What one reader saw."""

    reads: int = 0
    torn: int = 0
    errors: int = 0
    versions: int = 0


@dataclass(frozen=True)
class Took:
    """What one publication took, in seconds."""

    wall: float
    cpu: float


def measure() -> str:
    """Publish under readers; return a table."""
    with tempfile.TemporaryDirectory() as folder:
        own, waits = archived.settings(Path(folder) / "home", STREAMS), list[str]()
        with run.open(own, Watch(waiting=waits.append)) as session:
            archived.night(session, "big", 0, _big(ROWS))
            alone = [_published(session, number) for number in range(1, ALONE + 1)]
            with duckdb.connect(own.place.link, read_only=True) as kept:
                before = kept.execute(READ).fetchone()
                read, under = _under_readers(own.place.link, lambda each: _published(session, each))
                same = kept.execute(READ).fetchone() == before
            size = own.place.link.stat().st_size
    rows = [
        ["none", len(alone), "", "", "", *_times(alone)],
        [
            f"{READERS} and one open throughout",
            len(under),
            f"{read.reads:,}",
            read.errors,
            read.torn,
            *_times(under),
        ],
    ]
    columns = [
        "readers",
        "publications",
        "reads",
        "errors",
        "torn",
        "CPU, median",
        "wall, median",
        "wall, most",
    ]
    words = (
        f"{ROWS:,} rows, {size / 1e6:,.0f} MB a file; the publisher waited {len(waits)} times; "
        f"the connection that stayed open read the same {'' if same else 'NOT '}to the end"
    )
    text = f"{table(columns, rows)}\n\n{words}"
    if read.errors or read.torn or waits or not same:
        raise SystemExit(f"{text}\n\na reader saw what it must not")
    return text


def _big(rows: int) -> "map[str]":
    return map(_record, range(rows))


def _record(number: int) -> str:
    return json.dumps({"id": f"u-{number:09}", "amount": f"{number % 9973}.25", "text": "x" * 80})


def _published(session: Session, number: int) -> Took:
    """Fold another night of the small lists and publish; return what publishing took."""
    for stream in ("left", "right"):
        rows = [json.dumps({"id": row, "night": number}) for row in range(50)]
        archived.night(session, stream, number, rows)
    (order,) = archived.orders(session, STREAMS)
    run.fold(session, order)
    wall, cpu = time.monotonic(), time.process_time()
    version = run.publish(session, [order]).version
    took = Took(time.monotonic() - wall, time.process_time() - cpu)
    if version is None or version.version != number:
        raise SystemExit(f"publication {number} is {version}")
    return took


def _under_readers(link: Path, publish: Callable[[int], Took]) -> tuple[Read, list[Took]]:
    context = multiprocessing.get_context("spawn")
    over, heard = context.Event(), context.Queue()
    readers = [context.Process(target=_read, args=(str(link), over, heard)) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    for _reader in readers:
        heard.get(timeout=120)  # it has read once
    took = [publish(number) for number in range(ALONE + 1, ALONE + 1 + PUBLICATIONS)]
    over.set()
    seen = [Read(**heard.get(timeout=120)) for _reader in readers]
    for reader in readers:
        reader.join()
    sums = {name: sum(getattr(each, name) for each in seen) for name in asdict(Read())}
    return Read(**sums), took


def _read(
    link: str,
    over: "multiprocessing.synchronize.Event",
    heard: "multiprocessing.Queue[dict[str, int]]",
) -> None:
    """Open, read and close until it is over; say what was seen."""
    reads = torn = errors = 0
    versions = set[object]()
    while not over.is_set():
        try:
            with duckdb.connect(link, read_only=True, config={"threads": 1}) as reader:
                found = reader.execute(READ).fetchone() or ()
        except duckdb.Error:
            errors += 1
            continue
        reads += 1
        versions.add(found[5])
        torn += len({*found[:4], found[5]}) != 1 or found[4] != ROWS
        if reads == 1:
            heard.put({})
    heard.put(asdict(Read(reads, torn, errors, len(versions))))


def _times(took: list[Took]) -> list[str]:
    walls = [each.wall for each in took]
    cpu = median(each.cpu for each in took)
    return [f"{cpu:.2f} s", f"{median(walls):.2f} s", f"{max(walls):.2f} s"]
