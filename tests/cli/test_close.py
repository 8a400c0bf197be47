"""Closing a month from the command line: what is printed, refused, and listed afterwards."""

import shutil
from pathlib import Path

import pytest

from tests.cli.program import ran
from tests.run.months import ended, home


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("months") / "home"
    with home(root) as session:
        ended(session)
    return root


@pytest.fixture
def environment(lived: Path, tmp_path: Path) -> dict[str, str]:
    root = Path(shutil.copytree(lived, tmp_path / "home", symlinks=True))
    return {"PARTNER_SYNC_HOME": str(root), "PARTNER_SYNC_BASE_URL": "http://127.0.0.1:9"}


def test_a_month_is_closed_listed_and_opened_again(environment: dict[str, str]) -> None:
    none = ran(environment, "close")
    people = ("--preparer=ann", "--reviewer=bob", "--note=as [agreed]")
    done = ran(environment, "close", "2026-01", *people)
    again = ran(environment, "close", "2026-01", *people)
    listed = ran(environment, "close")
    nameless = ran(environment, "close", "2026-01", "--reopen")
    opened = ran(environment, "close", "2026-01", "--reopen", "--by=cid", "--note=a late bill")
    twice = ran(environment, "close", "2026-01", "--reopen", "--by=cid", "--note=a late bill")

    assert (none.returncode, none.stdout) == (0, "no month is closed\n")
    assert done.returncode == 0, done.stderr
    assert "2026-01 is closed: 5 records in archive/closes/2026-01/001, manifest " in done.stdout
    assert "from the next publication on; `partner-sync publish`" in done.stdout
    assert (again.returncode, "was closed by ann and bob at" in again.stderr) == (2, True)
    assert ["2026-01", "1", "CLOSED", "ann", "bob"] in [
        line.split()[:5] for line in listed.stdout.splitlines()
    ]
    assert "as [agreed]" in listed.stdout
    assert (nameless.returncode, "--by and --note" in nameless.stderr) == (2, True)
    assert "2026-01 is open again; archive/closes/2026-01/001 stays" in opened.stdout
    assert (twice.returncode, "nothing to reopen" in twice.stderr) == (2, True)


REFUSED = [
    (["2026-01", "--preparer=ann"], "signed off by two"),
    (["2026-01", "--preparer=ann", "--reviewer=ANN"], "signed off by two"),
    (["january", "--preparer=ann", "--reviewer=bob"], "january"),
    (["2026-01", "--reopen", "--reviewer=bob"], "--reviewer goes with closing"),
]


@pytest.mark.parametrize(("arguments", "why"), REFUSED)
def test_what_cannot_be_is_refused(
    environment: dict[str, str], arguments: list[str], why: str
) -> None:
    refused = ran(environment, "close", *arguments)
    assert (refused.returncode, why in refused.stderr) == (2, True), refused.stderr
