"""Kinds of lists, read over HTTP: no row is lost or doubled, within a number of requests.

The list changes before pages are read, repeats rows, moves them, or lies about its end. The sandbox
says which rows it showed, and which were there throughout.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.config.home import Home
from pipelines.metadata.runs import Outcome
from pipelines.metadata.tables import Scan
from tests.homes import make_home, opened, rows, sync_once
from tests.sandbox.running import Running, started
from tests.truth import row_differences, table_records

pytestmark = pytest.mark.long
ROWS, LIMIT, PAGES = 1050, 88, 12
SETTINGS = f"[streams.usage]\nlimit = {LIMIT}\n"
CLAMPED = 50
ENOUGH = 25  # plain passes, after which a list is PARTIAL
SIZES = ("--partners", "25", "--usage", str(ROWS), "--billing", "0")
Faults = dict[str, dict[str, Any]]
TIES: Faults = {"ties": {"value": 7}}
MOVED: Faults = {"moved-row": {"times": 1, "after": PAGES // 2}}
TENTH = {"every": 10, "where": "ends"}


@dataclass(frozen=True)
class Kind:
    """A kind of list: most requests in plain passes, and what makes it what it is."""

    most: float
    faults: Faults = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    is_proven: bool = True  # else it may be PARTIAL


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
    "mixed": Kind(4, changes={"insert": 0.2, "delete": 0.2}),
    "mixed at the ends": Kind(4, changes={"insert": 0.5, "delete": 0.5, "where": "ends"}),
    "new keys": Kind(ENOUGH, {"new-keys": {}}, is_proven=False),
    "has_more false too early": Kind(ENOUGH, {"false-end": {}}, is_proven=False),
    "has_more for ever": Kind(ENOUGH, {"endless": {}}, is_proven=False),
    "limit clamped": Kind(ENOUGH, {"clamp-limit": {"value": CLAMPED}}),
    "next_offset null": Kind(ENOUGH, {"no-next-offset": {}}),
    "next_offset loops": Kind(ENOUGH, {"standstill": {}}),
    "next_offset jumps": Kind(ENOUGH, {"jump": {}}),
    "one empty page": Kind(ENOUGH, {"empty-page": {"times": 1}}, is_proven=False),
    "empty page in the middle": Kind(ENOUGH, {"hidden-rows": {"value": 200}}, is_proven=False),
    "short page in the middle": Kind(ENOUGH, {"short-page": {}}, is_proven=False),
}


@pytest.fixture(scope="module")
def service_process() -> Iterator[Running]:
    with started("--rate", "1000", *SIZES) as running:
        yield running


@pytest.fixture
def service(service_process: Running) -> Iterator[Running]:
    yield service_process
    service_process.reset()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_row_is_lost_or_doubled(kind: Kind, service: Running, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", service)
    home.settings_file.write_text(SETTINGS)
    with service.scan("usage") as truth:
        service.change("usage", **kind.changes)
        for name, scope in kind.faults.items():
            service.fault(name, "/v2/usage", **scope)
        (result,) = sync_once(home, "usage").streams
    with duckdb.connect(home.link, read_only=True) as db:
        held = {row["_key"]: row for row in table_records(db, "current", "usage")}
    assert 0 < len(held) == result.rows
    served: dict[str, list[Any]] = {}
    for record in (json.loads(text, parse_float=Decimal) for text in truth["served"]):
        served.setdefault(record["usageId"], []).append(record)
    for key, row in held.items():
        assert [] in [row_differences(row, record) for record in served[key]]

    ((repeated, reason),) = rows(home, "SELECT repeated, reason FROM meta.completeness")
    lived, passing = set(truth["lived"]), {*truth["insert"], *truth["delete"]}
    asked = answers_used(home, result.scan_id)
    if result.state is Outcome.COMPLETE:
        assert lived <= held.keys() <= lived | passing
        assert repeated == len({*truth["repeated"], *truth["conflicting"]})
        quarantined = rows(home, "SELECT records.key FROM quarantine.records AS records")
        assert sorted(quarantined) == sorted((key,) for key in truth["conflicting"])
    else:
        assert not kind.is_proven
        assert result.state is Outcome.PARTIAL
        assert reason
    plain = -(-ROWS // CLAMPED) if "clamp-limit" in kind.faults else PAGES
    assert asked <= kind.most * plain


def answers_used(home: Home, scan_id: str | None) -> int:
    """Count the requests of a scan; pages that were fetched ahead and not used cost no slot."""
    with opened(home) as session, session.metadata.transaction() as db:
        scan = session.archive.open_sealed(db.get_one(Scan, scan_id))
        return sum(exchange.ask is not None for _, exchange in scan.exchanges())
