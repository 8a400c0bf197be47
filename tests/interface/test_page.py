"""docs/interface.md and the tests name each other."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "interface.md").read_text(encoding="utf-8")
CHAPTERS = {"1": 9, "2": 17, "3": 5, "4": 26, "5": 49, "6": 1, "7": 13, "8": 20, "9": 5}
NUMBER = r"[1-9]\.[1-9]\d?"
BY_ID = "test_5_scope_needs_its_mapping"  # the number of the clause is in the parameter's id
TABLES = [line for line in PAGE.splitlines() if line.startswith("|") and "---" not in line]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def names(line: str) -> list[tuple[str, str, str]]:
    return re.findall(r"`(\w+/test_\w+\.py)::(\w+)(?:\[([^`\]]+)\])?`", line)


def functions(file: str) -> set[str]:
    return set(
        re.findall(r"^def (test_\w+)", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE)
    )


ROWS = {cells(line)[0]: line for line in TABLES if re.match(rf"\| {NUMBER} ", line)}


@pytest.mark.parametrize("number", ROWS)
def test_a_row_names_its_own_test_first_and_only_tests_that_exist(number: str) -> None:
    named = names(cells(ROWS[number])[-1])
    assert all(name in functions(file) for file, name, _ in named)
    _, name, case = named[0]
    prefix = f"{number}-" if name == BY_ID else f"test_{number.replace('.', '_')}_"
    assert (case if name == BY_ID else name).startswith(prefix)


def test_every_test_of_a_clause_has_its_row() -> None:
    files = [f"interface/{file.name}" for file in TESTS.glob("interface/test_*.py")]
    tests = {name for file in files for name in functions(file) if re.match(r"test_\d_", name)}
    assert len(tests) > 100
    assert tests == {name for row in ROWS.values() for _, name, _ in names(row)[:1]}


def test_clauses_are_numbered_without_a_gap() -> None:
    every = {f"{one}.{two}" for one, last in CHAPTERS.items() for two in range(1, last + 1)}
    assert set(ROWS) == every
    assert len([line for line in TABLES if re.match(rf"\| {NUMBER} ", line)]) == len(every)


def test_no_cell_is_empty() -> None:
    assert {len(cells(line)) for line in TABLES} == {3, 5}
    assert all(all(cells(line)) for line in TABLES)
