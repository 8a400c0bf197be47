"""An erasure beside a sync that is reading: it waits, then nothing of the partner is anywhere."""

import sqlite3
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep

import duckdb

from pipelines.cli.sandbox import Service
from pipelines.warehouse import traces
from tests import forked
from tests.cli.program import clean, ran
from tests.forked import Forked
from tests.sandbox.running import sandboxed

# Some 15 requests that take their time, after a night that was quick.
LISTS = ("--rate=0", "--latency-ms=120", "--partners=300", "--usage=1500", "--billing=60")


def environment(service: Service, home: Path) -> dict[str, str]:
    own = {"PARTNER_SYNC_HOME": str(home), "PARTNER_SYNC_WINDOW": "0"}
    return service.environment | own


def started(given: dict[str, str], *arguments: str) -> Forked:
    return forked.start(forked.partner_sync, list(arguments), clean(given), stderr=True)


def linked(home: Path) -> int:
    """Return how many pages are on record, of all readings."""
    with closing(sqlite3.connect(home / "state" / "state.sqlite", timeout=30)) as ledger:
        return int(ledger.execute("SELECT count(*) FROM pages").fetchone()[0])


def until_it_reads(home: Path, before: int) -> None:
    deadline = monotonic() + 30
    while linked(home) < before + 2:
        assert monotonic() < deadline
        sleep(0.02)


def test_it_waits_for_the_reading_and_leaves_nothing_of_the_partner(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with sandboxed(*LISTS) as service:
        given = environment(service, home)
        assert ran(given, "sync").returncode == 0
        with duckdb.connect(home / "warehouse.duckdb", read_only=True) as reader:
            [(gone,)] = reader.sql("SELECT max(partner_id) FROM current.partners").fetchall()
        before = linked(home)
        sync = started(given, "sync")
        until_it_reads(home, before)

        erasure = started(given, "erase", "--partner", gone, "--reason=request 7", "--yes")
        synced, erased = sync.communicate(), erasure.communicate()

        assert synced.returncode == 0, synced.stderr
        assert erased.returncode == 0, erased.stdout + erased.stderr
        assert "another run is reading it: waiting for it" in erased.stderr
        assert list(traces.files(home, gone)) == []
        verified = ran(given, "verify")
        assert verified.returncode == 0, verified.stderr
        with duckdb.connect(home / "warehouse.duckdb", read_only=True) as reader:
            assert reader.sql("SELECT count(*) FROM current.partners").fetchall() == [(299,)]

        assert ran(given, "sync").returncode == 0  # what the service still says comes again
    assert ran(given, "verify").returncode == 0
