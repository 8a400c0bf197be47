"""The examples are what partner-sync writes today.

Not compared: digests, which depend on when a workbook was written; the user who made them; and the
report page, for which there are many tests.
"""

import re
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests.examples.make import FOLDER, make
from tests.reports.conftest import text_of

DIGEST = re.compile(r"[0-9a-f]{64}")
LARGEST = 1_000_000  # bytes, together
UNSTABLE = ("SHA-256 of ", "preparer: number of the user")  # lines of a sign-off
# Of this machine, or of a home.
PLACES = re.compile(r"/(tmp|home|work|root|Users)/")


def cells_of(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of each sheet."""
    found = {}
    for sheet in openpyxl.load_workbook(file):
        rows = sheet.iter_rows(values_only=True)
        found[sheet.title] = [row for row in rows if not str(row[0]).startswith(UNSTABLE)]
    return found


@pytest.mark.long
def test_the_examples_are_what_is_written_today(tmp_path: Path) -> None:
    make(tmp_path)
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {file.name for file in FOLDER.iterdir()} - {"README.md"}
    hint = "run `make examples`"
    assert (tmp_path / "journal.csv").read_text() == (FOLDER / "journal.csv").read_text(), hint
    pages = [(folder / "statement.html").read_text() for folder in (tmp_path, FOLDER)]
    made, kept = (DIGEST.sub("", text_of(page)) for page in pages)
    assert made == kept, hint
    made_cells, kept_cells = (
        cells_of(folder / "working-paper.xlsx") for folder in (tmp_path, FOLDER)
    )
    assert made_cells == kept_cells, hint


def test_the_examples_are_small_and_of_no_machine() -> None:
    files = [*FOLDER.iterdir()]
    assert sum(file.stat().st_size for file in files) < LARGEST
    for file in files:
        if file.suffix != ".xlsx":
            assert not PLACES.search(file.read_text(encoding="utf-8")), file.name
