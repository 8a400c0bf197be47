"""Faults against a home that was synced well before: what a run may come to, whatever goes wrong.

It ends in a right and complete table, or in a clear error with yesterday's data as they were. Used
for every fault alone (test_faults) and, by night, for every pair of them (`make fault-pairs`).
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import httpx

from pipelines import run
from pipelines.cli import sandbox
from pipelines.cli.sandbox import Service
from pipelines.clock import Clock
from pipelines.run import Choice, Outcome
from pipelines.settings import load
from tests.sandbox.running import sandboxed
from tests.virtual import Haste

# A list of one page and one of two; no limiter, since hasty clocks would break any rule of it.
SMALL = ("--rate=0", "--partners=60", "--usage=0", "--billing=130")
KEYS = {"partners": "partner_id", "billing": "billing_id"}
DIGEST = """
SELECT count(*), sum(hash(each)) FROM
(SELECT COLUMNS(lambda name: name NOT IN ('_page', '_row', '_run', 'first_seen', 'changed_at'))
 FROM {}) AS each
"""
# Of each record, whether it counts as missing, and a digest of its other values.
RECORDS = """
SELECT "{key}", absent, hash(each) FROM (
SELECT missing_since IS NOT NULL AS absent, COLUMNS(lambda name: name NOT IN
('_page', '_row', '_run', 'first_seen', 'changed_at', 'missing_since')) FROM current."{name}") each
"""
# Faults that take real seconds take little; what a sandbox would wait for is another test's.
SHORT = {"stall": 0.05, "late": 0.05, "dribble": 0.1}
MOST_REQUESTS = 600
LIES = {"page", "list"}  # stages of faults in answers that are well-formed and untrue
Row = tuple[Any, ...]
Truth = Mapping[str, list[str]]


@dataclass(frozen=True)
class Trouble:
    """A fault of the sandbox's catalogue, switched on for every so many requests."""

    name: str
    every: int = 1
    stage: str = ""

    @property
    def body(self) -> dict[str, Any]:
        """What switches it on."""
        value = {"value": SHORT[self.name]} if self.name in SHORT else {}
        return {"name": self.name, "every": self.every, **value}


@dataclass(frozen=True)
class Published:
    """What analysts see of a home: by table a digest of all its rows, by stream its keys.

    Where and when the rows were read is no part of it. `aside` counts those in quarantine.
    """

    digests: dict[str, Row]
    keys: dict[str, set[Row]]
    aside: dict[str, int]

    def of(self, stream: str) -> dict[str, Row]:
        """Return the digests of a stream's tables, those of its arrays too."""
        return {name: each for name, each in self.digests.items() if name.split("__")[0] == stream}


def published(home: Path) -> Published:
    """Read the file that analysts open."""
    with duckdb.connect(home / "warehouse.duckdb", read_only=True) as reader:
        tables = [
            name
            for (name,) in reader.execute(
                "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'current'"
            ).fetchall()
        ]
        digests = {name: _one(reader, DIGEST.format(f'current."{name}"')) for name in tables}
        keys = {
            name: set(reader.execute(f'SELECT "{column}" FROM current."{name}"').fetchall())
            for name, column in KEYS.items()
        }
        aside = {
            name: _one(reader, f'SELECT count(*) FROM quarantine."{name}"')[0] for name in KEYS
        }
    return Published(digests, keys, aside)


def _one(reader: duckdb.DuckDBPyConnection, query: str) -> Row:
    row = reader.execute(query).fetchone()
    assert row is not None
    return row


@dataclass(frozen=True)
class Stand:
    """A sandbox, and a home that was synced well from it."""

    service: Service
    home: Path

    @cached_property
    def http(self) -> httpx.Client:
        """Ask the control routes over one connection."""
        return httpx.Client(base_url=self.service.url, trust_env=False, verify=False)  # noqa: S501 http

    @cached_property
    def good(self) -> Published:
        """What a sync without faults published."""
        return published(self.home)

    @cached_property
    def catalogue(self) -> list[Trouble]:
        """Every fault that this sandbox has."""
        found = self.control("GET", "/faults")["catalogue"]
        return [Trouble(each["name"], stage=each["stage"]) for each in found]

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the sandbox's control routes for something."""
        answer = self.http.request(method, f"/__sandbox__{path}", json=body).raise_for_status()
        return answer.json() if answer.content else None

    def befall(self, troubles: Sequence[Trouble], home: Path) -> Outcome:
        """Sync a copy of the good home while faults are on; judge what it came to."""
        shutil.copytree(self.home, home, symlinks=True)
        self.control("POST", "/reset")
        for trouble in troubles:
            self.control("POST", "/faults", trouble.body)
        scans = {name: self.control("POST", "/scans", {"list": name})["id"] for name in KEYS}
        outcome = synced(home, Haste().clock)
        truths = {name: self.control("POST", f"/scans/{each}/end") for name, each in scans.items()}
        counted = self.control("GET", "/statistics")["requests"]
        requests = sum(sum(statuses.values()) for statuses in counted.values())
        assert requests <= MOST_REQUESTS
        self._judge(outcome, home, {trouble.stage for trouble in troubles}, truths)
        return outcome

    def _judge(
        self, outcome: Outcome, home: Path, stages: set[str], truths: Mapping[str, Truth]
    ) -> None:
        found = published(home)
        failed = {each.stream: str(each.error) for each in outcome.streams if each.error}
        partial = {
            each.stream
            for each in outcome.streams
            if each.manifest and each.manifest.proof.grade.marked
        }
        for name in partial:  # copies far apart cannot be told from a record that changed
            truths[name]["revised"] += truths[name]["conflicting"]
        for stream, rows in self.good.keys.items():
            whole = found.of(stream) == self.good.of(stream)
            whole = whole and found.keys[stream] == rows
            if stream in failed:
                assert whole, f"{stream} failed and changed: {failed[stream]}"
                self._judge_words(failed[stream])
            elif not whole and "page" in stages:
                assert found.keys[stream] <= rows or truths[stream]["renamed"]
                # Not fewer: of a key that is there twice one record may be set aside.
                assert len(found.keys[stream]) + found.aside[stream] >= len(rows), stream
            elif not whole:
                assert "list" in stages, f"{stream} changed"
                self._judge_records(records(home, stream), truths[stream], stream)
        assert not partial or stages & LIES, f"{partial} may lack rows"
        lacking = failed or partial
        assert outcome.exit_code == (0 if not lacking else 3 if outcome.version else 1)
        assert (outcome.version is None) == (len(failed) == len(self.good.keys))

    def _judge_words(self, words: str) -> None:
        assert len(words) > 20
        assert "\n" not in words
        assert self.service.environment["PARTNER_SYNC_CLIENT_SECRET"] not in words

    def _judge_records(self, found: dict[str, Row], truth: Truth, stream: str) -> None:
        """Judge a list by what was true of it: whatever differs from before had changed."""
        before = records(self.home, stream)
        assert before.keys() <= found.keys(), f"{stream} lost rows"
        assert before.keys() == found.keys() or truth["renamed"], f"{stream} has rows of no record"
        absent = {key for key in before if found[key][0]}
        assert absent <= {*truth["hidden"], *truth["renamed"]}, f"{stream} lacks rows"
        changed = {key for key in before if found[key][1] != before[key][1]}
        assert changed <= {*truth["revised"]}, f"{stream} changed"


def records(home: Path, stream: str) -> dict[str, Row]:
    """Return of each record by key whether it counts as missing, and a digest of its values."""
    with duckdb.connect(home / "warehouse.duckdb", read_only=True) as reader:
        rows = reader.execute(RECORDS.format(key=KEYS[stream], name=stream)).fetchall()
    return {str(key): (absent, digest) for key, absent, digest in rows}


def synced(home: Path, clock: Clock, *streams: str) -> Outcome:
    """Sync streams of a home by a clock, all of them where none is named."""
    os.environ["PARTNER_SYNC_HOME"] = str(home)
    with run.open(load(), clock=clock) as session:
        return run.sync(session, run.orders(session, Choice(streams=streams or tuple(KEYS))))


@contextmanager
def standing(folder: Path, *options: str, clock: Clock | None = None) -> Iterator[Stand]:
    """Start a sandbox, point this process at it, and sync a first home: in haste by default."""
    before = dict(os.environ)
    try:
        with sandboxed(*(options or SMALL)) as service:
            sandbox.point_at(service)
            stand = Stand(service, folder / "good")
            first = synced(stand.home, clock or Haste().clock)
            errors = {each.stream: str(each.error or "") for each in first.streams}
            assert errors == dict.fromkeys(KEYS, ""), errors
            assert stand.good.digests
            with stand.http:
                yield stand
    finally:
        os.environ.clear()
        os.environ.update(before)
