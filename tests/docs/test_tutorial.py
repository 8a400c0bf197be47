"""Types the commands of docs/tutorial.md, in their order, in a home with a month that is over."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.reconcile.months import publish_months
from tests.versions.homes import Stores, home_of

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"```(sh|toml)\n(.*?)```", re.DOTALL)
PROGRAM = ".venv/bin/partner-sync "
VERIFY = ".venv/bin/python .demo/"
books = home_of(publish_months)


def steps() -> list[str]:
    """Return what the page lets the reader type, and the text that is appended to the mapping."""
    typed = list[str]()
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        typed += [text] if kind == "toml" else text.splitlines()
    # The demo's newest month is another one.
    return [text.replace("2026-10", "2026-09") for text in typed]


@pytest.mark.long
def test_every_command_of_the_tutorial_does_what_it_says(books: Stores) -> None:
    cli = Cli(books.home)
    shown = list[str]()
    for text in steps():
        if text.startswith(PROGRAM):
            arguments = shlex.split(text.removeprefix(PROGRAM))
            shown.append(" ".join(cli(*arguments).stdout.split()))
        elif text.startswith(VERIFY):
            script = books.home.root / text.removeprefix(VERIFY)
            done = subprocess.run(
                [sys.executable, script], check=True, capture_output=True, text=True
            )
            shown.append(done.stdout)
        else:
            assert text.startswith("[accounts]"), text
            with books.home.mapping_file.open("a", encoding="utf-8") as mapping:
                mapping.write(text)
    checked, closed, listed, verified, reopened = shown[1], *shown[5:9]
    assert "2026-09 can be closed" in checked
    assert "2026-09 is closed as published" in closed
    assert "journal.csv has" in closed
    assert "SHA-256" in listed
    assert verified.startswith("intact")
    assert "is open again" in reopened
    assert "reopened" in shown[-1]
    copy = books.home.closes / "2026-09" / "001"
    assert {"2026-09.xlsx", "journal.csv", "report.html"} <= {file.name for file in copy.iterdir()}
