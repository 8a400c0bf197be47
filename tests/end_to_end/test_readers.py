"""Analysts keep what they opened, new readers see the newest version; a rollback builds none."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.app.maintenance import rollback
from pipelines.config.home import Home
from tests.homes import opened, rows, sync_once
from tests.sandbox.running import Running

COUNT = "SELECT count(*) FROM current.usage"
# Opens the link and answers one count for each line.
READER = f"""
import duckdb, sys
db = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "read-only")
for _ in sys.stdin:
    print(db.sql({COUNT!r}).fetchone()[0], flush=True)
"""


@pytest.mark.long
def test_readers_keep_what_they_opened(sandbox: Running, synced: Home) -> None:
    with reader(synced, "read-write") as first:  # as a careless tool does
        assert asked(first) == 1500
        sandbox.change("usage", delete=3.0)
        sync_once(synced, "usage")
        with reader(synced, "read-only") as second:
            fewer = asked(second)
            assert fewer < 1500
            files = {file: file.stat().st_mtime_ns for file in synced.versions.iterdir()}
            with opened(synced) as session:
                rollback(session, None, "too few")
            assert files == {file: file.stat().st_mtime_ns for file in synced.versions.iterdir()}
            assert (asked(first), asked(second)) == (1500, fewer)
    assert rows(synced, COUNT) == [(1500,)]
    assert synced.link.readlink() == Path("versions/v00000001.duckdb")


def reader(home: Home, mode: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", READER, str(home.link), mode]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def asked(process: subprocess.Popen[str]) -> int:
    assert process.stdin
    assert process.stdout
    process.stdin.write("count\n")
    process.stdin.flush()
    return int(process.stdout.readline())
