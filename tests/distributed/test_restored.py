"""A backup taken while a night went on: the ledger's dump is older than the lake's catalog.

By pg_dump and pg_restore, as deploy/distributed/README.md has them. Not here: the object store's
copy, which is newer than both and holds more than they name.
"""

import subprocess
from pathlib import Path

from tests.cli.program import ran
from tests.distributed import places
from tests.distributed.accounts import serving

LISTS = ("--rate=0", "--partners=20", "--usage=20", "--billing=20")


def restored(dump: Path) -> str:
    """Restore a dump into a database of its own; return its URL."""
    made = places.database()
    client("pg_restore", "--exit-on-error", f"--dbname={made.rpartition('/')[2]}", str(dump))
    return made


def dumped(url: str, file: Path) -> Path:
    """Dump a database into a file."""
    client("pg_dump", "--format=custom", f"--file={file}", url.rpartition("/")[2])
    return file


def client(program: str, *words: str) -> None:
    """Run a program of PostgreSQL."""
    server = places.postgresql()
    place = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres"]
    subprocess.run([str(server.programs / program), *place, *words], check=True)


def test_what_was_published_between_both_dumps_is_named_and_analysts_see_a_newer_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "accounts").mkdir()
    with serving(tmp_path / "accounts", 1, *LISTS) as accounts:
        home = tmp_path / "home"
        accounts.write(home)
        environment = {
            "PARTNER_SYNC_HOME": str(home),
            "PARTNER_SYNC_WINDOW": "0",
            **places.variables(places.settings(lake=True)),
            **places.object_store().environment,
            **accounts.secrets,
        }
        assert ran(environment, "sync", "--connection", "c01").returncode == 0
        state = dumped(environment["PARTNER_SYNC_STATE"], tmp_path / "state.dump")
        assert ran(environment, "sync", "--connection", "c01").returncode == 0
    environment["PARTNER_SYNC_STATE"] = restored(state)
    found = ran(environment, "verify")
    assert found.returncode == 1
    assert "lake.v00000002.snapshot: the ledger does not know it" in found.stderr
    assert "it does not lead to lake.v00000001.snapshot" in found.stderr
    assert "lake.v00000003" in ran(environment, "publish").stdout
    assert "it does not lead to" not in ran(environment, "verify").stderr
