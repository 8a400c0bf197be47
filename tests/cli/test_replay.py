"""`replay` and `disappeared` as a user runs them: what they say, and with which code they end."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from pipelines import run
from pipelines.settings import Settings
from tests.cli.program import ran
from tests.forked import Done
from tests.run.nights import FIRST, Nights

NOBODY = "http://127.0.0.1:9"  # whoever asks it anything fails
MANY, FEW = (json.dumps([{"id": row} for row in range(count)]) for count in (100, 50))


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[Nights]:
    own = Settings(
        home=tmp_path / "home", base_url=NOBODY, auth_url=NOBODY, audience="a", client_id="c"
    )
    with run.open(own) as session:
        yield Nights(session)


def said(nights: Nights, *arguments: str) -> Done:
    environment = {
        "PARTNER_SYNC_HOME": str(nights.session.settings.place.root),
        "PARTNER_SYNC_BASE_URL": NOBODY,
        "PARTNER_SYNC_AUTH_URL": NOBODY,
        "PARTNER_SYNC_AUDIENCE": "a",
        "PARTNER_SYNC_CLIENT_ID": "c",
    }
    return ran(environment, *arguments)


def rows(nights: Nights, what: str = "*") -> int:
    with duckdb.connect(nights.session.settings.place.link, read_only=True) as reader:
        return int(reader.sql(f"SELECT count({what}) FROM current.usage").fetchall()[0][0])


def test_days_are_replayed_and_published(nights: Nights) -> None:
    nights.read(MANY)
    nights.day += timedelta(days=1)  # a day that nobody read
    nights.read(MANY)
    from_first = ("replay", "--from", str(FIRST))

    whole, part = said(nights, *from_first), said(nights, *from_first, "--to", str(FIRST))

    for done, version in ((whole, 1), (part, 2)):
        assert (done.returncode, done.stderr.strip()) == (0, "")
        assert "default/usage: 100 rows" in done.stdout
        assert f"published as warehouse.v{version:08}.duckdb" in done.stdout
    hole = f"{FIRST + timedelta(days=1)}: was never read, and stays unknown"
    assert (hole in whole.stdout, hole in part.stdout) == (True, False)
    assert rows(nights) == 100


def test_what_was_never_read_is_not_replayed(nights: Nights) -> None:
    nothing = said(nights, "replay", "--from", str(FIRST))
    nights.read(MANY)
    before = FIRST - timedelta(days=9)
    other = said(nights, "replay", "--from", str(before), "--to", str(before))

    assert (nothing.returncode, other.returncode) == (1, 1)
    assert "none at all" in nothing.stderr
    assert f"Days that were read: from {FIRST} to {FIRST}." in other.stderr
    assert not nights.session.settings.place.link.exists()


@pytest.mark.parametrize(
    "arguments",
    [(), ("--from", "yesterday"), ("--from", str(FIRST), "--to", str(FIRST - timedelta(days=1)))],
)
def test_days_that_are_none_are_refused(nights: Nights, arguments: tuple[str, ...]) -> None:
    nights.read(MANY)
    done = said(nights, "replay", *arguments)
    assert (done.returncode, "--" in done.stderr) == (2, True)
    assert not nights.session.settings.place.link.exists()


def test_days_in_the_base_and_pages_that_are_lost_are_said(nights: Nights) -> None:
    for _night in range(3):
        nights.read(MANY)
    nights.fold()
    run.retain(nights.session, 2, "ann")
    dropped = said(nights, "replay", "--from", str(FIRST))
    kept = said(nights, "replay", "--from", str(FIRST + timedelta(days=1)))
    for page in (nights.session.settings.place.archive / "pages").rglob("*.zst"):
        page.unlink()
    lost = said(nights, "replay", "--from", str(FIRST + timedelta(days=1)))

    assert (dropped.returncode, kept.returncode, lost.returncode) == (1, 0, 1)
    assert f"can begin on {FIRST + timedelta(days=1)}" in dropped.stderr
    assert "cannot be folded again" in lost.stderr
    assert rows(nights) == 100


def test_rows_that_disappeared_wait_for_a_word(nights: Nights) -> None:
    nights.read(MANY)
    nights.fold()
    empty = said(nights, "disappeared")
    file = nights.read(FEW)
    held = said(nights, "replay", "--from", str(FIRST))
    listed = said(nights, "disappeared")

    assert (empty.returncode, "nothing" in empty.stdout) == (0, True)
    assert (held.returncode, rows(nights, "missing_since")) == (3, 0)
    assert "partner-sync disappeared accept usage" in " ".join(held.stderr.split())
    assert listed.returncode == 0
    assert {file, "100", "50"} <= set(listed.stdout.split())

    accepted = said(nights, "disappeared", "accept", "usage", "--note", "a merger")

    assert accepted.returncode == 0, accepted.stderr
    assert (rows(nights), rows(nights, "missing_since")) == (100, 50)
    again = said(nights, "replay", "--from", str(FIRST))
    assert (again.returncode, rows(nights, "missing_since")) == (0, 50)
    twice = said(nights, "disappeared", "accept", "usage")
    assert (twice.returncode, "nothing" in twice.stderr) == (2, True)
    assert "nothing" in said(nights, "disappeared").stdout


def test_a_word_about_nothing_is_refused(nights: Nights) -> None:
    assert said(nights, "disappeared", "accept").returncode == 2
    for stream in ("usage", "unheard-of"):
        done = said(nights, "disappeared", "accept", stream)
        assert (done.returncode, "nothing" in done.stderr) == (2, True)
