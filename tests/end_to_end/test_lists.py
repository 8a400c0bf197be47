"""Kinds of lists, read over HTTP: no row is lost or doubled, within a number of requests.

The list changes before pages are read, repeats rows, moves them, or lies about its end. The sandbox
says which rows it showed, and which were there throughout.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.metadata.runs import Outcome
from tests.homes import KEYS, make_home, rows, sync_once
from tests.sandbox.running import Running
from tests.truth import by_key, current

pytestmark = pytest.mark.long
PAGES = 10
SETTINGS = "[streams.billing]\nlimit = 15\n[streams.usage]\nlimit = 150\n"
KEY = 'key = "usageId"\n'  # nobody can tell a key from rows that come again and again
ENOUGH = 25  # plain passes, after which a list is PARTIAL
Faults = dict[str, dict[str, Any]]
TIES: Faults = {"ties": {"value": 7}}
MOVED: Faults = {"moved-row": {"times": 1, "after": PAGES // 2}}
TENTH = {"every": 10, "where": "ends"}


@dataclass(frozen=True)
class Kind:
    """A kind of list: most requests in plain passes, and what makes it what it is.

    Without `is_proven` it may be PARTIAL. Bills are the shorter list.
    """

    most: float
    faults: Faults = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    is_proven: bool = True
    settings: str = ""
    stream: str = "usage"


KINDS = {
    "stable": Kind(1.34),
    "head grows": Kind(1.34, changes={"insert": 0.5, "where": "head"}),
    "tail grows": Kind(1.34, changes={"insert": 0.5, "where": "tail"}),
    "ties of 2": Kind(7, {"ties": {"value": 2}}),
    "ties of 7": Kind(7, TIES),
    "ties of 60": Kind(7, {"ties": {"value": 60}}),
    "ties of 700": Kind(ENOUGH, {"ties": {"value": 700}}, is_proven=False),
    "one tie": Kind(ENOUGH, {"ties": {"value": 10**6}}, is_proven=False),
    "newest change last": Kind(7, {"last-change": {"value": 2}}),
    "newest change first": Kind(7, {"last-change-first": {"value": 2}}),
    "far repeats": Kind(3, {"repeated-rows": {}}),
    "near repeats": Kind(3, {"repeated-rows-near": {}}),
    "far conflicts": Kind(3, {"conflicting-rows": {}}),
    "near conflicts": Kind(3, {"conflicting-rows-near": {}}),
    "far repeats, one row moves": Kind(3, {"repeated-rows": {}} | MOVED),
    "near conflicts, one row moves": Kind(3, {"conflicting-rows-near": {}} | MOVED),
    "ties of 7, additions": Kind(12, TIES, {"insert": 0.2, **TENTH}),
    "ties of 7, removals": Kind(25, TIES, {"delete": 0.1, "every": 10}, is_proven=False),
    "mixed": Kind(4, changes={"insert": 0.5, "delete": 0.5}),
    "mixed at the ends": Kind(4, changes={"insert": 0.5, "delete": 0.5, "where": "ends"}),
    "new keys": Kind(ENOUGH, {"new-keys": {}}, is_proven=False, stream="billing"),
    "has_more false too early": Kind(ENOUGH, {"false-end": {}}, is_proven=False),
    "has_more for ever": Kind(ENOUGH, {"endless": {}}, is_proven=False),
    "begins again behind its end": Kind(
        ENOUGH, {"never-ending": {}}, is_proven=False, settings=KEY
    ),
    "limit clamped": Kind(2 * ENOUGH, {"clamp-limit": {"value": 50}}),
    "next_offset null": Kind(ENOUGH, {"no-next-offset": {}}),
    "next_offset loops": Kind(ENOUGH, {"standstill": {}}),
    "next_offset jumps": Kind(ENOUGH, {"jump": {}}),
    "one empty page": Kind(ENOUGH, {"empty-page": {"times": 1}}, is_proven=False),
    "empty page in the middle": Kind(ENOUGH, {"hidden-rows": {"value": 200}}, is_proven=False),
    "seven places without a row": Kind(3, {"hidden-rows": {"value": 7}}, is_proven=False),
    "short page in the middle": Kind(ENOUGH, {"short-page": {}}, is_proven=False),
}

# Each is like one that is tried each time; tests/extract/test_kinds.py tries them without a server.
SLOW = {
    *("tail grows", "ties of 2", "ties of 7", "ties of 60", "one tie", "newest change first"),
    *("far repeats", "near conflicts", "ties of 7, removals", "mixed at the ends"),
    *("next_offset loops", "one empty page"),
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name, kind in KINDS.items()
    ],
)
def test_no_row_is_lost_or_doubled(kind: Kind, sandbox: Running, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", sandbox)
    home.settings_file.write_text(SETTINGS + kind.settings)
    with sandbox.scan(kind.stream) as truth:
        sandbox.change(kind.stream, **kind.changes)
        for name, scope in kind.faults.items():
            sandbox.fault(name, f"/v2/{kind.stream}", **scope)
        (result,) = sync_once(home, kind.stream).streams
    with duckdb.connect(home.link, read_only=True) as db:
        held = current(db, kind.stream)
    keys, lived = held.keys(), set(truth["lived"])
    served = by_key(truth["served"], KEYS[kind.stream])
    assert [key for key in keys if held[key] not in served[key]] == []
    assert result.scan
    assert 0 < len(keys) == result.scan.completeness.rows
    ((repeated, reason),) = rows(home, "SELECT repeated, reason FROM meta.completeness")
    if result.state is Outcome.COMPLETE:
        assert lived <= keys <= lived.union(truth["insert"], truth["delete"])
        assert repeated == len({*truth["repeated"], *truth["conflicting"]})
        quarantined = rows(home, "SELECT records.key FROM quarantine.records AS records")
        assert sorted(quarantined) == sorted((key,) for key in truth["conflicting"])
    else:
        assert (result.state, kind.is_proven) == (Outcome.PARTIAL, False)
        assert reason
    used = sum(exchange.ask is not None for exchange in result.scan.exchanges())
    assert used <= kind.most * PAGES  # pages that were fetched ahead and not used cost no slot
