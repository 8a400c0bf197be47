"""Keeping house from the command line: what the verbs print and with which code they end."""

from pathlib import Path

import duckdb

from tests.cli.program import ran
from tests.sandbox.running import sandboxed

SMALL = ("--rate=1000", "--partners=20", "--usage=1", "--billing=1")


def test_verify_ends_with_1_and_says_what_is_wrong(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with sandboxed(*SMALL) as service:
        environment = service.environment | {"PARTNER_SYNC_HOME": str(home)}
        ran(environment, "sync")
    sound = ran(environment, "verify")
    next((home / "archive" / "pages").rglob("*.zst")).write_bytes(b"damaged")
    harmed = ran(environment, "verify")

    assert (sound.returncode, sound.stderr.strip()) == (0, "")
    assert "3 archived pages" in sound.stdout
    assert "everything is as it was written" in sound.stdout
    assert (harmed.returncode, "1 fault" in harmed.stdout) == (1, True)
    assert "cannot be read" in harmed.stderr
    assert "Restore the file from a copy of the archive." in harmed.stderr


def test_erase_and_retain_say_what_they_did(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with sandboxed(*SMALL) as service:
        environment = service.environment | {"PARTNER_SYNC_HOME": str(home)}
        ran(environment, "sync")
        ran(environment, "sync")
    with duckdb.connect(home / "warehouse.duckdb", read_only=True) as reader:
        row = reader.execute("SELECT partner_id FROM current.partners LIMIT 1").fetchone()
    assert row is not None
    asked = ran(environment, "erase", "--partner", row[0])
    erased = ran(environment, "erase", "--partner", row[0], "--reason=request 7", "--yes")
    retained = ran(environment, "retain", "--keep=1")
    again, sound = ran(environment, "retain", "--keep=1"), ran(environment, "verify")

    assert (asked.returncode, "cannot be undone" in asked.stdout + asked.stderr) == (1, True)
    assert erased.returncode == 0, erased.stdout + erased.stderr
    assert "records were erased from" in erased.stdout
    assert "not erased: copies that analysts made" in erased.stdout
    assert "3 manifests and" in retained.stdout
    assert "0 manifests and 0 pages" in again.stdout
    assert (sound.returncode, "(request 7)" in sound.stdout) == (0, True), sound.stderr
