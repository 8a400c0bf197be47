"""A person notes that a statement was sent: lists say so, and nothing else changes."""

from datetime import date, timedelta
from typing import Any

import msgspec
import pytest

from pipelines.core.clock import Clock
from pipelines.core.errors import ConfigurationError, StorageFailed
from pipelines.finance.report import read_figures_of_books, write_report
from pipelines.finance.statement import erase_statements, list_statements, write_statements
from pipelines.finance.statement_pages import read_index
from pipelines.finance.statement_sent import LONGEST, note_sent
from pipelines.finance.statements import FORMAT
from pipelines.finance.statements.issues import INDEX
from tests.cli.conftest import Cli
from tests.finance.statements import publish_statements
from tests.reconcile.books import FIRST
from tests.reconcile.months import SEPTEMBER
from tests.reports.conftest import page_text, text_of
from tests.reports.test_lists import lists_of
from tests.versions.homes import DAY, Stores, home_of

books = home_of(publish_statements)
MAIL = "billing@first.example"
WRITTEN = date(2026, 11, 4)  # by the clock of these books
ASKED = (SEPTEMBER, FIRST, "")


def sent_of(stores: Stores, partner: str = FIRST) -> list[tuple[str, str]]:
    (row,) = list_statements(stores, SEPTEMBER, partner)
    return [(f"{note['day']}", note["to"]) for note in row["sent"]]


def indexed(stores: Stores, partner: str = FIRST) -> set[tuple[str | None, str | None]]:
    """Return the days and to whom a partner's statements were sent, as the report has them."""
    rows = read_index(stores)
    return {(row["sent"], row["sent_to"]) for row in rows if row["partner_id"] == partner}


def test_what_was_sent_is_listed_and_nothing_else_changes(books: Stores) -> None:
    cli = Cli(books.home)
    folder = books.home.statements / "2026-09"
    cli("statement", "--all", "2026-09", "--no-pdf")
    before = {file: file.read_bytes() for file in folder.iterdir()}
    assert indexed(books) == {(None, None)}
    assert cli("statement", "--list", FIRST).stdout.count("not noted") == 1
    today = f"{Clock().utc_now():%Y-%m-%d}"
    note = ("statement", "First Ltd", "2026-09", "--sent", "1", "--to")
    assert f"{today} to {MAIL}, noted by" in " ".join(cli(*note, MAIL).stdout.split())
    assert indexed(books) == {(today, MAIL)}
    (file,) = {*folder.iterdir()} - before.keys()
    kept = file.read_bytes()
    assert oct(file.stat().st_mode)[-3:] == "600"
    cli(*note, MAIL)  # said twice, it was sent once
    cli(*note, "the bookkeeper", "--on", today)
    assert sent_of(books) == [(today, MAIL), (today, "the bookkeeper")]
    assert file.read_bytes() == kept
    assert {each: each.read_bytes() for each in before} == before
    assert len([*folder.iterdir()]) == len(before) + 2
    ((day, to),) = indexed(books)
    assert day == today
    assert to
    assert to.split("; ")[1].startswith("the bookkeeper (")
    assert indexed(books, "second") == {(None, None)}
    page = (books.home.statements / "index.html").read_text()
    assert page.count(to) == 1
    assert page.count("not noted") == len(list_statements(books)) - 1


def test_each_break_says_whether_its_partner_was_told(books: Stores) -> None:
    """Told is who has a statement with it that was sent; answers are beside it."""
    write_statements(books, SEPTEMBER, with_pdf=False)
    note_sent(books, ASKED, 1, MAIL, WRITTEN)
    page = write_report(books, read_figures_of_books(books, with_details=True)).read_text("utf-8")
    rows = lists_of(page)["breaks"]["rows"]
    states = set()
    for row in rows:
        is_asked = row["month"] == "2026-09" and row["uncertain"] is None
        is_partner = row["partner"] != "no partner"
        expected = None
        if is_asked and is_partner:
            expected = "yes" if row["partner_id"] == FIRST else "statement not sent"
        assert row["told"] == expected, row
        states.add(expected)
        if expected == "yes":
            assert row["told_in"] == "001 of Sep 2026, sent 04 Nov 2026"
            assert (books.home.statements / row["told_page"]).is_file()
    assert states >= {"yes", "statement not sent"}
    told = sum(row["told"] == "yes" and row["state"] is None for row in rows)
    text = text_of(page)
    assert f"in a statement that is noted as sent: {told} ;" in text
    # A statement of an earlier release did not keep its breaks: the next one adds them.
    (file,) = (books.home.statements / "2026-09").glob(f"{FIRST}-*-001.json")
    kept = msgspec.json.decode(file.read_bytes())
    breaks = kept.pop("breaks")
    file.write_bytes(msgspec.json.encode(kept))
    (row,) = write_statements(books, SEPTEMBER, FIRST, with_pdf=False)
    assert (row["number"], row["is_new"]) == (1, False)
    assert msgspec.json.decode(file.read_bytes())["breaks"] == breaks
    # A page that is signed has no recipients.
    assert MAIL not in page_text(books)


def test_the_command_says_what_a_note_lacks(books: Stores) -> None:
    cli = Cli(books.home)
    cli("statement", FIRST, "2026-09", "--no-pdf")
    for wrong in (("--to", MAIL), ("--sent", "1"), ("--sent", "1", "--to", "x", "--on", "5 Oct")):
        assert "Nothing was noted" in cli("statement", FIRST, "2026-09", *wrong, code=2).stderr
    for other in ("--all", "--list"):
        cli("statement", "2026-09", other, "--sent", "1", "--to", MAIL, code=2)
    cli("statement", FIRST, "2026-09", "--sent", "0", "--to", MAIL, code=2)
    cli("statement", FIRST, "2026-09", "--sent", "1", "--to", MAIL, "--on", "", code=2)
    assert sent_of(books) == []
    cli("statement", FIRST, "2026-09", "--sent", "1", "--to", MAIL)
    # The next command that writes statements keeps it.
    assert cli.json("statement", FIRST, "2026-09", "--no-pdf")[0]["sent"][0]["to"] == MAIL


WRONG: list[tuple[tuple[str, int, str, date | None], str]] = [
    ((FIRST, 2, MAIL, None), "no statement 2 of first, 2026-09: .* Nothing was noted"),
    (("nobody", 1, MAIL, None), "no statement 1 of nobody"),
    (("Twin", 1, MAIL, None), "2 partners have a statement 1 of Twin"),
    ((FIRST, 1, " ", None), "--to has 0 characters"),
    ((FIRST, 1, "x" * (LONGEST + 1), None), "--to has 201 characters"),
    ((FIRST, 1, MAIL, WRITTEN + 2 * DAY), "2026-11-06 is in the future"),
    ((FIRST, 1, MAIL, WRITTEN - 2 * DAY), "was written on 2026-11-04, after 2026-11-02"),
]


def test_what_cannot_have_been_sent_is_not_noted(books: Stores) -> None:
    write_statements(books, SEPTEMBER, with_pdf=False)
    for (partner, number, to, day), message in WRONG:
        with pytest.raises(ConfigurationError, match=message):
            note_sent(books, (SEPTEMBER, partner, ""), number, to, day)
    assert not any(row["sent"] for row in list_statements(books))


def test_a_day_counts_in_any_time_zone(books: Stores) -> None:
    books.clock.now += timedelta(hours=9)  # 11:00 UTC: already the 5th, or still the 3rd
    write_statements(books, SEPTEMBER, FIRST, with_pdf=False)
    for days in (1, -1):
        note_sent(books, ASKED, 1, MAIL, WRITTEN + days * DAY)
    assert [day for day, _to in sent_of(books)] == ["2026-11-03", "2026-11-05"]


def test_erasing_reaches_what_was_noted(books: Stores) -> None:
    write_statements(books, SEPTEMBER, with_pdf=False)
    note_sent(books, ASKED, 1, f"Jane Doe <{MAIL}>")
    note_sent(books, (SEPTEMBER, "a_b", ""), 1, "by post")
    folder = books.home.statements / "2026-09"
    erase_statements(books, "a_b")
    assert len([*folder.glob("*.sent-*")]) == 1
    erase_statements(books, MAIL)
    assert sent_of(books) == [("2026-11-04", "Jane Doe <[erased]>")]
    assert MAIL not in (books.home.statements / "index.html").read_text()
    assert MAIL not in (books.home.statements / INDEX).read_text()
    (file,) = folder.glob("*.sent-*")
    file.write_bytes(b"{")
    assert f"{file} cannot be read" in list_statements(books)[-1]["problem"]
    with pytest.raises(StorageFailed, match="No record was erased"):
        erase_statements(books, "second")
    assert [*folder.glob("second-*")]
    # Nothing is written over it, and no list says that it was not sent.
    note_sent(books, ASKED, 1, MAIL)
    assert file.read_bytes() == b"{"
    assert indexed(books) == {("2026-11-04", f"{MAIL}; a note cannot be read")}


def test_a_value_that_only_a_note_has_is_erased(books: Stores) -> None:
    cli = Cli(books.home)
    cli("statement", FIRST, "2026-09", "--no-pdf")
    cli("statement", FIRST, "2026-09", "--sent", "1", "--to", MAIL)
    (file,) = (books.home.statements / "2026-09").glob("*.sent-*")
    erase = ("erase", MAIL, "--reason", "law")
    assert file.name in cli(*erase, code=2).stdout.replace("\n", "")
    assert cli(*erase, "--yes").stdout.count("Changed or deleted: 1 file.") == 1
    assert sent_of(books) == [(f"{Clock().utc_now():%Y-%m-%d}", "[erased]")]
    kept = [each for each in books.home.root.rglob("*") if each.is_file()]
    assert not [each for each in kept if MAIL.encode() in each.read_bytes()]
    assert "No file contains the value" in cli(*erase, "--yes", code=2).stderr


def test_what_was_sent_stays_if_a_file_of_it_is_lost(books: Stores) -> None:
    write_statements(books, SEPTEMBER, FIRST, with_pdf=False)
    note_sent(books, ASKED, 1, MAIL)
    folder = books.home.statements / "2026-09"
    (kept,) = folder.glob("*.json")
    content = kept.read_bytes()
    kept.unlink()
    left = {file: file.read_bytes() for file in folder.iterdir()}
    (problem,) = [row["problem"] for row in list_statements(books)]
    assert problem.startswith(f"{kept} is missing")
    with pytest.raises(StorageFailed, match="No record was erased"):
        erase_statements(books, FIRST)
    (row,) = write_statements(books, SEPTEMBER, FIRST, with_pdf=False)
    assert (row["number"], row["is_new"]) == (2, True)
    assert {file: file.read_bytes() for file in left} == left
    kept.write_bytes(content)
    assert {row["number"] for row in list_statements(books)} == {1, 2}


def test_a_note_that_is_being_written_is_no_note(books: Stores) -> None:
    """Nor is one that a killed command left: the next one deletes it."""
    write_statements(books, SEPTEMBER, FIRST, with_pdf=False)
    note_sent(books, ASKED, 1, "by post")
    (file,) = (books.home.statements / "2026-09").glob("*.sent-*")
    part = file.with_name(f".{file.name}.part")
    for content in (b"", file.read_bytes().replace(b"by post", MAIL.encode())):
        part.write_bytes(content)
        assert [row["problem"] for row in list_statements(books)] == [None]
        assert [to for _day, to in sent_of(books)] == ["by post"]
        erase_statements(books, MAIL)  # is not refused


def test_a_list_of_an_earlier_release_has_nothing_of_sending(books: Stores) -> None:
    write_statements(books, SEPTEMBER, with_pdf=False)
    file = books.home.statements / INDEX
    rows: list[dict[str, Any]] = msgspec.json.decode(file.read_bytes())
    for row in rows:
        del row["sent"], row["sent_to"]
    file.write_bytes(msgspec.json.encode(rows))
    assert indexed(books) == {(None, None)}


@pytest.mark.parametrize("end", [".json", ".sent-001"])
def test_what_a_newer_release_kept_is_neither_read_nor_changed(books: Stores, end: str) -> None:
    write_statements(books, SEPTEMBER, FIRST, with_pdf=False)
    note_sent(books, ASKED, 1, MAIL)
    (file,) = (books.home.statements / "2026-09").glob(f"*{end}")
    said: dict[str, Any] = msgspec.json.decode(file.read_bytes())
    assert "format" not in said  # the first one
    newer = msgspec.json.encode({**said, "format": FORMAT + 1})
    file.write_bytes(newer)
    why = f"it has format {FORMAT + 1}, and this partner-sync reads formats up to {FORMAT}"
    assert f"{file} cannot be read: {why}" in [row["problem"] for row in list_statements(books)]
    with pytest.raises(StorageFailed, match=why):
        erase_statements(books, MAIL)
    assert file.read_bytes() == newer
