"""Analysts keep what they opened, new readers see the newest version, a rollback is at once."""

import subprocess
import sys
import time
from pathlib import Path

import duckdb

from pipelines.app.versions import roll_back
from pipelines.config.home import Home
from tests.homes import opened, rows, sync_once
from tests.sandbox.running import Running

COUNT = "SELECT count(*) FROM current.usage"
# Opens the link read-write, as a careless tool does, and answers one count for each line.
READER = f"""
import duckdb, sys
db = duckdb.connect(sys.argv[1])
for _ in sys.stdin:
    print(db.sql({COUNT!r}).fetchone()[0], flush=True)
"""


def test_both_readers_keep_what_they_opened(sandbox: Running, synced: Home) -> None:
    command = [sys.executable, "-c", READER, str(synced.link)]
    with (
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as writer,
        duckdb.connect(str(version_copy(synced)), read_only=True) as reader,
    ):
        assert asked(writer) == 1500
        sandbox.change("usage", delete=3.0)
        sync_once(synced)
        sandbox.reset()
        (fewer,) = rows(synced, COUNT)
        assert fewer[0] < 1500
        assert asked(writer) == 1500
        assert reader.sql(COUNT).fetchall() == [(1500,)]
        with opened(synced) as session:
            began = time.monotonic()
            roll_back(session, None, person="ann", reason="too few")
            assert time.monotonic() - began < 5
        assert asked(writer) == 1500
    assert rows(synced, COUNT) == [(1500,)]
    assert synced.link.readlink() == Path("versions/v00000001.duckdb")


def version_copy(home: Home) -> Path:
    """Return the version that the link names now, as an analyst's tool resolves it."""
    return home.link.resolve()


def asked(process: subprocess.Popen[str]) -> int:
    assert process.stdin
    assert process.stdout
    process.stdin.write("count\n")
    process.stdin.flush()
    return int(process.stdout.readline())
