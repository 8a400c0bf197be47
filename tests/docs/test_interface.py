"""The interface's page and the tests name each other: no test without a row, no empty cell.

Here: what pytest collects, against what `docs/interface.md` says. Not here: the clauses.
"""

import re
import subprocess
import sys
from itertools import chain

import pytest

from tests.docs.conftest import EVERY, ROOT

PAGE = (ROOT / "docs" / "interface.md").read_text(encoding="utf-8")
NUMBER = r"[1-9]\.[1-9]\d?"
NAMED = re.compile(r"`(\w+/test_\w+\.py)::([^`]+)`")
CHAPTERS = {"1": 9, "2": 17, "3": 5, "4": 26, "5": 49, "6": 1, "7": 13, "8": 20, "9": 5}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


TABLES = [line for line in PAGE.splitlines() if line.startswith("|") and "---" not in line]
ROWS = {cells(line)[0]: cells(line) for line in TABLES if re.match(rf"\| {NUMBER} ", line)}


@pytest.fixture(scope="module")
def collected(pytestconfig: pytest.Config) -> set[str]:
    """Every test that the page could name, without what pytest makes of its parameters too."""
    every = pytestconfig.stash.get(EVERY, None) or listed()
    found = {name.removeprefix("tests/") for name in every}
    return found | {name.partition("[")[0] for name in found}


def listed() -> set[str]:
    """Let pytest list them, where this run is of a few tests only."""
    folders = sorted({f"tests/{file.partition('/')[0]}" for file, _ in NAMED.findall(PAGE)})
    listing = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", *folders],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return {line for line in listing.splitlines() if "::" in line}


def numbered(name: str) -> str | None:
    """Give the clause that a test is of, by its name or its id."""
    by_id = re.search(rf"\[({NUMBER})-", name)
    by_name = re.search(r"::test_(\d)_(\d+)_", name)
    if by_id:
        return by_id[1]
    return ".".join(by_name.groups()) if by_name else None


@pytest.mark.parametrize("number", ROWS)
def test_a_row_names_tests_that_exist_and_first_of_all_its_own(
    collected: set[str], number: str
) -> None:
    named = ["::".join(pair) for pair in NAMED.findall(ROWS[number][-1])]
    assert named
    assert not set(named) - collected
    assert numbered(named[0]) == number


def test_every_numbered_test_has_its_row(collected: set[str]) -> None:
    tests = {name for name in collected if name.startswith("interface/")}
    whole = {name for name in tests if "[" not in name and numbered(name)}
    named = {"::".join(pair) for pair in NAMED.findall(PAGE)}
    assert len(whole) > 100
    assert not whole - named
    assert {number for name in tests if (number := numbered(name))} == set(ROWS)


def test_every_test_of_the_interface_is_numbered(collected: set[str]) -> None:
    tests = {name for name in collected if name.startswith("interface/")}
    parametrized = {name.partition("[")[0] for name in tests if "[" in name}
    leaves = tests - parametrized
    assert leaves
    assert not [name for name in leaves if not numbered(name)]


def test_clauses_are_numbered_without_a_gap() -> None:
    numbers = [row for row in TABLES if re.match(rf"\| {NUMBER} ", row)]
    assert len(numbers) == len(ROWS)
    every = chain.from_iterable(
        [f"{chapter}.{clause}" for clause in range(1, last + 1)]
        for chapter, last in CHAPTERS.items()
    )
    assert set(ROWS) == set(every)


def test_no_cell_is_empty() -> None:
    heads = [cells(line) for line in TABLES if line.startswith(("| no.", "| silent"))]
    assert {len(head) for head in heads} == {3, 5}
    for line in TABLES:
        found = cells(line)
        assert len(found) in (3, 5), line
        assert all(found), line


@pytest.mark.parametrize("number", [number for number, row in ROWS.items() if len(row) == 5])
def test_of_what_is_not_shown_the_assumption_and_the_sync_are_told(number: str) -> None:
    _, what, assumed, sync, _ = ROWS[number]
    assert len(what.split()) > 3
    assert len(assumed.split()) > 3
    assert re.match(r"(unknown|discover|configured?)\b", sync)
