"""PDFs of statements: whole, of one page, or none and why."""

import json
import sys
from pathlib import Path

import pytest

from pipelines.core.files import held_folder
from pipelines.finance.statement import list_statements, write_statements
from pipelines.finance.statements import pdf
from tests.finance.statements import publish_statements
from tests.reconcile.books import FIRST
from tests.reconcile.months import SEPTEMBER
from tests.versions.homes import Stores, home_of

books = home_of(publish_statements)
# Prints only if nobody holds the lock `export`; what it finds in the way is done first.
BROWSER = """#!{python}
import fcntl, pathlib, sys
target = next(each for each in sys.argv if each.startswith("--print-to-pdf=")).partition("=")[2]
for file in pathlib.Path({home!r}).glob({erased!r}):
    file.unlink()
for lock in pathlib.Path({home!r}).glob("locks/export*"):
    fcntl.flock(lock.open("rb+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
pathlib.Path(target).write_bytes(b"%PDF-1.7 %%EOF")
"""


def test_what_is_no_whole_pdf_is_not_kept(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(
        "#!/bin/sh\nfor each; do last=${each#--print-to-pdf=}\n"
        'test "$last" = "$each" || echo "<html>" > "$last"; done\n'
    )
    browser.chmod(0o700)
    with pytest.raises(pdf.NoPdf, match="no whole PDF"):
        pdf.print_page(str(browser), "page", tmp_path)


@pytest.mark.long
def test_a_page_is_printed_while_others_work_and_not_after_it_is_erased(
    books: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "browser"
    monkeypatch.setattr(pdf, "BROWSERS", (str(browser),))
    home = str(books.home.root)
    said = {"python": sys.executable, "home": home}
    browser.write_text(BROWSER.format(**said, erased="statements/2026-09/second-*.json"))
    browser.chmod(0o700)
    (row,) = write_statements(books, SEPTEMBER, "second")
    assert not any(file.endswith(".pdf") for file in row["files"])
    assert not [*books.home.statements.glob("*/*.pdf")]
    # What has no `.json` is not a statement: the next command deletes it, and what a kill left of
    # a page that was being printed.
    killed = books.home.statements / ".killed.part"
    killed.mkdir()
    (killed / "held").touch()
    with held_folder(books.home.statements) as living:
        problems = [row["problem"] for row in list_statements(books)]
        assert len(problems) == 2
        assert all("belongs to no statement" in problem for problem in problems)
        browser.write_text(BROWSER.format(**said, erased="nothing"))
        rows = write_statements(books, SEPTEMBER)
        assert (living.exists(), killed.exists()) == (True, False)
    assert [row["left_out"] for row in rows] == [""] * 6
    assert [row["problem"] for row in list_statements(books)] == [None] * 6
    assert len([*books.home.statements.glob("2026-09/*.pdf")]) == 6


@pytest.mark.long
def test_a_browser_prints_a_statement(books: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        pdf.find_browser()
    except pdf.NoPdf:
        return  # what is said then is tested above
    (row,) = write_statements(books, SEPTEMBER, FIRST)
    content = next(Path(file).read_bytes() for file in row["files"] if file.endswith(".pdf"))
    assert content.startswith(b"%PDF-")
    assert b"/Count 1" in content  # one page
    monkeypatch.setattr(pdf, "SECONDS", 0)
    (row,) = write_statements(books, SEPTEMBER, "second")
    assert "took more than 0 s" in row["left_out"]
    issue = next((books.home.statements / "2026-09").glob("second-*.json"))
    assert json.loads(issue.read_bytes())["left_out"] == row["left_out"]
