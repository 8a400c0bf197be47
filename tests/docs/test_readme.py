"""The README is true: its commands exist, its output is theirs, its links lead somewhere."""

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
# What differs from run to run and from machine to machine.
VARYING = [
    (r"\d+:\d\d:\d\d", "TIME"),
    # On a slow machine a page or two are asked for in vain at the end of a first reading.
    (r"\d+ +0 +\d+\.\d(?= +COMPLETE +published)", "REQUESTS 0 WAITED"),
    (r"\S*python -c", "PYTHON -c"),
    (r"'[^']*warehouse\.duckdb'", "'WAREHOUSE'"),
    (r"report: \S*/reports/", "report: REPORTS/"),
    (r" +", " "),
]


def told(text: str) -> list[str]:
    """Return the lines of an output that say something, without what varies."""
    lines = []
    for line in text.splitlines():
        plain = line
        for pattern, word in VARYING:
            plain = re.sub(pattern, word, plain)
        if plain.strip(" ─"):
            lines.append(plain.strip())
    return lines


def test_the_two_commands_are_make_targets() -> None:
    commands = [line[2:] for block in BLOCKS for line in block.splitlines() if line[:2] == "$ "]
    assert commands == ["make demo", "make test"]
    for command in commands:
        words = [*command.split(), "--dry-run"]
        dry = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
        assert dry.returncode == 0


def test_the_output_shown_is_the_output(tmp_path: Path) -> None:
    """Run what `make demo` runs, at the documented rate, and look for every line shown."""
    program = Path(sys.executable).with_name("partner-sync")
    done = subprocess.run(
        [program, "demo", "--home", str(tmp_path / "demo")],
        env=os.environ | {"COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    with sqlite3.connect(tmp_path / "demo" / "state" / "state.sqlite") as ledger:
        asked = ledger.execute("SELECT count(*) FROM requests WHERE stream NOT NULL").fetchone()
    assert 68 <= asked[0] <= 68 + 2 * 3
    printed = set(told(done.stdout + done.stderr))
    shown = told(BLOCKS[0].removeprefix("$ make demo\n"))
    assert len(shown) > 15
    assert [line for line in shown if line not in printed] == []


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)]+)\)", README))))
def test_a_link_leads_to_a_file(link: str) -> None:
    assert (ROOT / link).is_file()


def test_it_is_one_screen() -> None:
    assert README.count("\n") <= 65
