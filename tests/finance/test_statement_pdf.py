"""PDFs of statements: whole, of one page, or none and why."""

import json
from pathlib import Path

import pytest

from pipelines.finance.statement import write_statements
from pipelines.finance.statements import pdf
from tests.finance.statements import publish_statements
from tests.reconcile.books import FIRST
from tests.reconcile.months import SEPTEMBER
from tests.versions.homes import Stores, home_of

books = home_of(publish_statements)


def test_what_is_no_whole_pdf_is_not_kept(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(
        "#!/bin/sh\nfor each; do last=${each#--print-to-pdf=}\n"
        'test "$last" = "$each" || echo "<html>" > "$last"; done\n'
    )
    browser.chmod(0o700)
    with pytest.raises(pdf.NoPdf, match="no whole PDF, exit code 0"):
        pdf.print_page(str(browser), "page")


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
