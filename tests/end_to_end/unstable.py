"""Nights on lists that do not stand still: what a sync loaded, held against the sandbox's truth.

Used by test_unstable_lists. Sizes and page sizes are those of the table in docs/completeness.md.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from pipelines import run
from pipelines.cli import sandbox
from pipelines.cli.sandbox import Service
from pipelines.run import Choice, Outcome
from pipelines.settings import load
from pipelines.state.proof import Grade, Proof
from pipelines.warehouse.meta import Fold
from tests.sandbox.running import Running, started
from tests.virtual import Haste

SIZES = ("--rate=0", "--partners=250", "--usage=6000", "--billing=1000")
KEYS = {"partners": "partner_id", "usage": "usage_id", "billing": "billing_id"}
PLAIN = 25  # requests of one plain pass of the three lists: 3, 12 and 10
RECORDED = "SELECT grade, repeats FROM meta.proofs WHERE stream = ? ORDER BY ended_at DESC LIMIT 1"
Truth = Mapping[str, list[str]]


@dataclass(frozen=True)
class Case:
    """A list that does not stand still, and what a sync of it may come to.

    `faults` are switched on for every list (or the path that they name), `changes` too. `most` and
    `again` bound the requests of the first and of the second night, in plain passes. `invented`:
    the list shows keys of no record.
    """

    name: str
    grades: frozenset[Grade]
    most: float
    faults: tuple[dict[str, Any], ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    again: float = 0.0
    invented: bool = False

    def begin(self, running: Running) -> None:
        """Let it befall a sandbox as it was at its start."""
        running.reset()
        for fault in self.faults:
            running.told("POST", "/faults", fault)
        if self.changes:
            running.told("POST", "/changes", dict(self.changes))


@dataclass(frozen=True)
class Loaded:
    """One list after a night: what the sync says of it, what it loaded, what is true."""

    proof: Proof
    fold: Fold
    truth: Truth
    rows: int  # that are there, as the sync has it
    there: frozenset[str]
    absent: frozenset[str]  # keys that count as missing
    aside: int
    ended: frozenset[str]  # keys with a version that ended
    recorded: tuple[str, int]  # grade and repeated rows, as analysts see them

    @property
    def lost(self) -> frozenset[str]:
        """The keys that were there throughout, and are not loaded."""
        return frozenset(self.truth["lived"]) - self.there

    @property
    def doubled(self) -> int:
        """How many rows are there more than keys."""
        return self.rows - len(self.there)

    @property
    def repeated(self) -> frozenset[str]:
        """The keys that were in the list twice."""
        return frozenset([*self.truth["repeated"], *self.truth["conflicting"]])

    @property
    def invented(self) -> frozenset[str]:
        """The keys that never were in the list."""
        known = (key for kind in ("lived", "insert", "delete") for key in self.truth[kind])
        return self.there - frozenset(known)


@dataclass(frozen=True)
class Night:
    """What a sync came to: its exit code, its requests for lists, and each list."""

    exit_code: int
    requests: int
    lists: Mapping[str, Loaded]

    @property
    def passes(self) -> float:
        """The requests in plain passes."""
        return self.requests / PLAIN


@contextmanager
def served(seed: int) -> Iterator[Running]:
    """Start a sandbox of the sizes of the table, and point this process at it."""
    before = dict(os.environ)
    try:
        with started(*SIZES, f"--seed={seed}") as running:
            sandbox.point_at(Service(running.url, running.environment))
            yield running
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def watched(running: Running) -> Iterator[Mapping[str, Truth]]:
    """Watch every list; what is yielded holds the truth of each once the block has ended."""
    with ExitStack() as scans:
        yield {name: scans.enter_context(running.scan(name)) for name in KEYS}


def night(running: Running, home: Path) -> Night:
    """Sync a home in haste while scans watch the lists."""
    running.told("DELETE", "/statistics")
    os.environ["PARTNER_SYNC_HOME"] = str(home)
    with watched(running) as truths, run.open(load(), clock=Haste().clock) as session:
        outcome = run.sync(session, run.orders(session, Choice(streams=tuple(KEYS))))
    counted = running.statistics()["requests"]
    requests = sum(sum(counted.get(f"/v2/{name}", {}).values()) for name in KEYS)
    return Night(outcome.exit_code, requests, _loaded(home, outcome, truths))


def _loaded(home: Path, outcome: Outcome, truths: Mapping[str, Truth]) -> dict[str, Loaded]:
    found = {}
    with duckdb.connect(home / "warehouse.duckdb", read_only=True) as reader:
        for each in outcome.streams:
            assert each.error is None, each.error
            assert each.manifest is not None
            assert each.fold is not None
            found[each.stream] = Loaded(
                each.manifest.proof,
                each.fold,
                truths[each.stream],
                **_rows(reader, each.stream, KEYS[each.stream]),
            )
    return found


def _rows(reader: duckdb.DuckDBPyConnection, name: str, key: str) -> dict[str, Any]:
    rows = reader.execute(f"SELECT {key}, missing_since IS NULL FROM current.{name}").fetchall()
    there = [str(value) for value, present in rows if present]
    aside = reader.execute(f"SELECT count(*) FROM quarantine.{name}").fetchone()
    ended = reader.execute(f"SELECT {key} FROM past.{name}").fetchall()
    recorded = reader.execute(RECORDED, [name]).fetchone()
    return {
        "rows": len(there),
        "there": frozenset(there),
        "absent": frozenset(str(value) for value, present in rows if not present),
        "aside": aside[0] if aside else 0,
        "ended": frozenset(str(value) for (value,) in ended),
        "recorded": recorded,
    }
