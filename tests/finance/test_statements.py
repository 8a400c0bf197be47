"""Statements for partners: exact figures, nothing of others, and what was written stays."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.core.errors import ArchiveDamaged, ConfigurationError
from pipelines.finance.books import make_books
from pipelines.finance.close import close_month, reopen_month
from pipelines.finance.reconcile.statements import RULES
from pipelines.finance.statement import list_statements, write_statements
from pipelines.finance.statements import pdf, words
from pipelines.finance.statements.figures import Request, Source, Statement
from pipelines.finance.statements.issues import name_of_files
from pipelines.finance.statements.page import render_statement
from tests.cli.conftest import Cli
from tests.finance.statements import (
    BILLS,
    FEES,
    FORMULA,
    HUGE,
    PARTNERS,
    SCRIPT,
    TERMS,
    USAGE,
    publish_statements,
)
from tests.reconcile.books import FIRST, decide, publish, used
from tests.reconcile.months import SEPTEMBER, SERVICE, signing
from tests.reports.conftest import page_text, text_of
from tests.versions.homes import Stores, home_of

OCTOBER = date(2026, 10, 1)
MINUS = "\u2212"
books = home_of(publish_statements)
# Words of our own work, which no partner reads.
INTERNAL = re.compile(
    r"not_billed|unreferenced|billed_twice|severity|materiality|assigned|owner|ann|B[0-9a-f]{12}"
)


def written(stores: Stores, month: date = SEPTEMBER, partner: str = "") -> dict[str, Any]:
    rows = write_statements(stores, month, partner, with_pdf=False)
    return {row["partner"]: row for row in rows}


def page_of(row: dict[str, Any]) -> str:
    return next(Path(file).read_text() for file in row["files"] if file.endswith(".html"))


def workbook_of(row: dict[str, Any]) -> openpyxl.Workbook:
    file = next(file for file in row["files"] if file.endswith(".xlsx"))
    return openpyxl.load_workbook(BytesIO(Path(file).read_bytes()))


def cells_of(row: dict[str, Any], sheet: str) -> list[tuple[Any, ...]]:
    return [tuple(cells) for cells in workbook_of(row)[sheet].iter_rows(values_only=True)]


def test_a_statement_has_exact_totals_and_what_is_asked_for(books: Stores) -> None:
    decide(books, "break_assign", break_of(books, "INV-5"), owner="ann")
    make_books(books)
    row = written(books)[FIRST]
    text = text_of(page_of(row))
    assert f"EUR 24.75 41.09 {MINUS}0.50 +15.84 +1.50 +14.84 {MINUS}0.50" in text
    assert "JPY 700 700 0 0 0 0 0" in text
    assert "Bill INV-4 03 Oct 2026 1 10.25" in text
    assert "The bill has another amount than the usage (EUR) +2.00 Usage u2" in text
    assert f"Usage that is billed to another account (EUR) {MINUS}4.40 Usage u3" in text
    assert "Fees that we accept Kind Currency Amount postage EUR +1.50" in text
    assert not INTERNAL.search(text)
    # Also in books of which the usage is on a bill of another partner.
    assert "SECRET" not in text + str(cells_of(row, "to confirm or correct"))
    assert "98.76" not in text + str(cells_of(row, "to confirm or correct"))
    asked_of_other = text_of(page_of(written(books)["second"]))
    assert (
        "Billed, and no usage of this account is known for it (EUR) +98.76 Bill INV-SECRET"
        in asked_of_other
    )
    assert (row["provisional"], row["problem"]) == ([], None)
    assert ("EUR", 24.75, 41.09, -0.5, 15.84, 1.5, 14.84, -0.5, None, None) in [
        (*cells, *[None] * (10 - len(cells)))[:10] for cells in cells_of(row, "statement")
    ]
    asked = cells_of(row, "to confirm or correct")
    assert asked[2][:4] == ("Billed more than once", "EUR", "bill", "INV-4")


def break_of(stores: Stores, number: str) -> str:
    sql = f"""
SELECT breaks.break_id FROM reconciliation.breaks AS breaks
JOIN reconciliation.break_rows AS rows USING (break_id)
JOIN temp.billed AS billed ON billed.id = rows.id WHERE billed.number = '{number}'"""
    ((break_id,),) = stores.rows(sql)
    return str(break_id)


def test_names_and_records_are_text_and_nothing_is_rounded(books: Stores) -> None:
    rows = written(books)
    assert f"{MINUS}{Decimal(HUGE):,f}" in page_of(rows["second"])
    texts = [cell for cells in cells_of(rows["second"], "statement") for cell in cells]
    assert HUGE in texts
    assert SCRIPT not in page_of(rows["second"])
    assert "&lt;script&gt;" in page_of(rows["second"])
    assert "Content-Security-Policy" in page_of(rows["second"])
    workbook = workbook_of(rows["a/b"])
    kinds = {cell.data_type for sheet in workbook for line in sheet.iter_rows() for cell in line}
    assert "f" not in kinds
    assert f"{FORMULA} (identifier a/b)" in [
        cells[0] for cells in cells_of(rows["a/b"], "statement")
    ]
    assert cells_of(rows["a/b"], "to confirm or correct")[2][3] == "=1+1"


def test_partners_whose_names_look_alike_have_files_of_their_own(books: Stores) -> None:
    rows = written(books)
    assert rows.keys() == {FIRST, "second", "a/b", "a_b", "A_b", "../../up"}
    files = [file for row in rows.values() for file in row["files"]]
    assert len({file.casefold() for file in files}) == len(files) == 12
    folder = books.home.statements / "2026-09"
    assert {Path(file).parent for file in files} == {folder}
    assert (
        oct(folder.stat().st_mode)[-3:] == oct(books.home.statements.stat().st_mode)[-3:] == "700"
    )
    assert {oct(Path(file).stat().st_mode)[-3:] for file in files} == {"600"}


@pytest.mark.long
@given(st.text(), st.text())
@settings(max_examples=50)
def test_no_two_identifiers_share_a_file_and_each_is_a_safe_name(one: str, other: str) -> None:
    first, second = (name_of_files("acme", each) for each in (one, other))
    assert (first.casefold() == second.casefold()) == (one == other)
    assert re.fullmatch(r"[A-Za-z0-9_-]{17,60}", first)


@pytest.mark.long
def test_what_was_written_stays_and_other_figures_are_another_statement(books: Stores) -> None:
    first = written(books, partner="First Ltd")[FIRST]
    again = written(books, partner=FIRST)[FIRST]
    assert (first["is_new"], again["is_new"], again["number"]) == (True, False, 1)
    content = page_of(first)
    # Newer books that say the same.
    publish(books, mapping=TERMS + FEES + "# new", usage=[*USAGE, used("x", "1", partner="second")])
    assert written(books, partner=FIRST)[FIRST]["is_new"] is False
    publish(books, mapping=TERMS + FEES, usage=[{**USAGE[0], "amount": "10.26"}, *USAGE[1:]])
    second = written(books, partner=FIRST)[FIRST]
    assert (second["is_new"], second["number"]) == (True, 2)
    assert page_of(first) == content
    listed = list_statements(books, SEPTEMBER, "First Ltd")
    assert [row["number"] for row in listed] == [2, 1]
    assert list_statements(books, OCTOBER) == []
    index = (books.home.statements / "index.html").read_text()
    assert all(f"2026-09/{Path(file).name}" in index for row in listed for file in row["files"])
    Path(first["files"][0]).write_text("changed")
    Path(second["files"][1]).unlink()
    problems = [row["problem"] for row in list_statements(books)]
    assert [re.findall(r"00\d\.\w+", problem) for problem in problems] == [
        ["002.xlsx"],
        ["001.html"],
    ]
    for file in (books.home.statements / "2026-09").glob("*.json"):
        file.write_text("{")
    assert "cannot be read" in list_statements(books)[-1]["problem"]
    # Nothing of what was written is replaced, whatever can be read of it.
    assert written(books, partner=FIRST)[FIRST]["number"] == 3


@pytest.mark.long
def test_a_month_that_is_not_proven_is_provisional(books: Stores) -> None:
    publish(books, complete=False, mapping=TERMS, billing=BILLS)
    row = written(books)["a_b"]
    uncertain = "Differences that are not certain are left out: 1."
    assert row["provisional"] == [words.NOT_COMPLETE, uncertain]
    assert "Provisional: amounts may still change." in page_of(row)
    assert "Nothing." in page_of(row)
    assert "Provisional: amounts may still change." in str(cells_of(row, "statement"))
    publish(books, mapping=f"grace_days = 60\n{TERMS}", billing=BILLS)
    assert written(books, OCTOBER)[FIRST]["provisional"] == [words.NOT_OVER]
    # That usage was read in December says nothing of bills, which were not.
    books.clock.now = datetime(2026, 12, 5, tzinfo=UTC)
    usage = [*USAGE, used("nov", "1.00", day="2026-11-01")]
    publish(books, mapping=TERMS, usage=usage)
    assert words.NOT_OVER in written(books, date(2026, 11, 1))[FIRST]["provisional"]


@pytest.mark.long
def test_a_closed_month_has_the_figures_that_were_signed(books: Stores) -> None:
    before = text_of(page_of(written(books)[FIRST]))
    close_month(books, *signing())
    publish(books, mapping=TERMS + FEES, usage=[{**USAGE[0], "amount": "99.00"}, *USAGE[1:]])
    row = written(books)[FIRST]
    assert row["source"].startswith("signed copy 2026-09/001 of version 1, manifest ")
    signed = text_of(page_of(row))
    assert signed.partition("Our reference")[0] == before.partition("Our reference")[0]
    corrected = text_of(page_of(written(books, OCTOBER)[FIRST]))
    assert "Corrections of earlier months" in corrected
    assert "Usage u1 Sep 2026 EUR 10.25 99.00 +88.75" in corrected
    file = books.home.closes / "2026-09" / "001" / "summary.parquet"
    content = file.read_bytes()
    file.chmod(0o600)
    file.write_bytes(content[:-1])
    with pytest.raises(ArchiveDamaged):
        written(books)
    make_books(books, again=True)
    assert words.NOT_CHECKED in written(books, OCTOBER)[FIRST]["provisional"]
    file.write_bytes(content)
    make_books(books, again=True)
    reopen_month(books, SEPTEMBER, "ann", "wrong")
    assert written(books)[FIRST]["provisional"] == [words.OUTDATED]


def test_report_statement_and_copy_are_as_of_one_time(books: Stores) -> None:
    """The lists were read on three days."""
    found = re.search(r"Data as of (.+? UTC)", page_text(books))
    assert found
    before = text_of(page_of(written(books)[FIRST]))
    close_month(books, *signing())
    after = text_of(page_of(written(books)[FIRST]))
    assert f"as of {found[1]}" in before
    assert f"as of {found[1]}" in after


MISSING: list[tuple[date, str, str]] = [
    (SEPTEMBER, "nobody", "have no partner `nobody`. Possible values: "),
    (date(2025, 1, 1), "", "have no month `2025-01`"),
    (OCTOBER, "second", "second has neither usage nor bills in 2026-10"),
    (SEPTEMBER, "Twin", "2 partners are named Twin"),
]


def test_what_is_not_there_has_no_statement(books: Stores) -> None:
    for month, partner, message in MISSING:
        with pytest.raises(ConfigurationError, match=message):
            write_statements(books, month, partner, with_pdf=False)
    assert list_statements(books) == []


@pytest.mark.long
def test_usage_that_is_not_compared_has_no_statement(books: Stores) -> None:
    publish(books, mapping="", usage=USAGE)
    with pytest.raises(ConfigurationError, match="has no summary of reconciliation"):
        write_statements(books, SEPTEMBER, with_pdf=False)


def test_a_page_is_bounded_and_counts_the_rest_with_its_sum() -> None:
    requests = []
    corrections = []
    for number in range(100):
        currency = "EUR" if number < 80 else "JPY"
        requests.append(Request("The bill differs", currency, Decimal(number), []))
        row = {"side": "usage", "record": f"u{number}", "month": SEPTEMBER, "currency": currency}
        row |= {"amount_before": None, "amount_now": Decimal(1), "difference": Decimal(number)}
        corrections.append(row)
    source = Source("books 1-1", datetime(2026, 10, 1, tzinfo=UTC), 1)
    said: Any = {"requests": requests, "corrections": corrections}
    text = text_of(render_statement(Statement("a", "p", "P", SEPTEMBER, source, [], **said)))
    assert text.count("The bill differs") == text.count("Usage u") == 30
    rest = {"EUR": sum(range(30, 80)), "JPY": sum(range(80, 100))}
    assert f"50 more findings, not shown here (EUR): see the workbook +{rest['EUR']:,}.00" in text
    assert f"20 more findings, not shown here (JPY): see the workbook +{rest['JPY']:,}" in text
    assert f"20 more records, not shown here: see the workbook JPY +{rest['JPY']:,}" in text


def test_each_rule_has_words_for_a_partner() -> None:
    assert words.OF_RULE.keys() == {*RULES}
    assert not INTERNAL.search(" ".join([*words.OF_RULE.values(), *words.OF_CAUSE.values()]))


@pytest.mark.long
def test_erasing_a_partner_deletes_its_statements_and_no_other(books: Stores) -> None:
    written(books)
    Cli(books.home)("erase", "a_b", "--reason", "asked", "--yes", "--force")
    left = [row["partner"] for row in list_statements(books)]
    assert sorted(left) == ["../../up", "A_b", "a/b", FIRST, "second"]
    # A number that stands for something else in a page or workbook is no identifier.
    publish(
        books,
        mapping=TERMS + FEES,
        partners=[*PARTNERS, {"id": "2", "name": "Two", "externalId": "x"}],
    )
    Cli(books.home)("erase", "2", "--reason", "asked", "--yes", "--force")
    assert len(list_statements(books)) == len(left)
    # The page has the number of the bill; a killed command left some files.
    folder = books.home.statements / "2026-09"
    Cli(books.home)("erase", "b5", "--reason", "asked", "--yes", "--force")
    assert FIRST not in [row["partner"] for row in list_statements(books)]
    written(books)
    for file in [*folder.glob(f"{FIRST}-*.html"), *folder.glob(f"{FIRST}-*.xlsx")]:
        file.unlink()
    Cli(books.home)("erase", "u4", "--reason", "asked", "--yes", "--force")
    assert FIRST not in [row["partner"] for row in list_statements(books)]
    assert "First Ltd" not in (books.home.statements / "index.html").read_text()


@pytest.mark.long
def test_the_command_writes_lists_and_says_what_is_left_out(
    books: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = Cli(books.home)
    monkeypatch.setattr(pdf, "BROWSERS", ("no-such-browser",))
    printed = cli("statement", "--all", "2026-09").stdout
    assert "6 statements written, 0 as before." in printed
    assert "Without a PDF, 6 statements: no browser was found (no-such-browser)." in printed
    assert "0 statements written, 1 as before." in cli("statement", FIRST, "2026-09").stdout
    page = next((books.home.statements / "2026-09").glob("second-*.html"))
    page.unlink()
    damaged = cli("statement", "second", "2026-09", code=3).stdout
    assert f"are not those that were written: {page.name}" in " ".join(damaged.split())
    rows = cli.json("statement", "--list", FIRST, "2026-09")
    assert [(row["partner"], row["state"]) for row in rows] == [(FIRST, "final")]
    of_service = (FIRST, "2026-09", "--connection", "acme")
    assert "1 as before." in cli("statement", *of_service).stdout
    assert len(cli.json("statement", "--list", *of_service)) == 1
    for command in ("--list", "--all"):
        printed = cli("statement", command, "2026-09", "-c", "nobody", code=2).stderr
        assert "acme" in printed
    books.configure("later", **SERVICE)
    printed = cli("statement", "--all", "2026-09", code=3).stdout
    assert "Connection later was never loaded" in " ".join(printed.split())
    assert cli.json("statement", "--list", "-c", "later") == []
    cli("statement", FIRST, "2026-9-1", code=2)
    cli("statement", "--all", FIRST, "2026-09", code=2)
    cli("statement", "2026-09", code=2)
