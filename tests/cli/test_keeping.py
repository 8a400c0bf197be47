"""Keeping house from the command line: what the verbs print and with which code they end."""

from pathlib import Path

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
