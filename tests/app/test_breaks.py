"""Breaks are listed, and what people decide about them is recorded: all of it, or nothing."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pipelines.app.nightly import build_with_books
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.finance.break_decisions import BreakDecision, choose_breaks, record_decisions
from pipelines.finance.breaks import BreakFilter, list_breaks, totals
from pipelines.finance.decisions_file import read_decisions, write_file
from pipelines.metadata.decisions import break_decisions
from pipelines.warehouse.duckdb_file import Row
from tests.app.conftest import ACCEPTING, BILLS, BREAKS, ESCAPED, EVIL
from tests.cli.conftest import Cli
from tests.reconcile.books import bill, line, publish
from tests.versions.homes import Reading, Stores, read

LONG, W, Y, MISSING, U = BREAKS
RESOLVE = BreakDecision("resolve", "seen")
Cells = dict[str, Any]


def listed(stores: Stores, **chosen: str) -> list[Row]:
    return list(list_breaks(stores, BreakFilter(**chosen)).breaks.to_pylist())


def subjects(stores: Stores, **chosen: str) -> list[str]:
    return [each["subject"] for each in listed(stores, **chosen)]


def decided(stores: Stores) -> list[tuple[Any, ...]]:
    with stores.metadata.transaction() as session:
        found = break_decisions(session)
    return [(each["kind"], each["owner"], each["reason"], each["difference"]) for each in found]


def take(stores: Stores, verdict: BreakDecision = RESOLVE, **chosen: str) -> int:
    rows = choose_breaks(stores, BreakFilter(**chosen), verdict)
    record_decisions(stores, rows)
    return len(rows)


@pytest.mark.long
def test_breaks_are_chosen_and_the_most_severe_come_first(books: Stores) -> None:
    assert subjects(books) == BREAKS
    assert subjects(books, rule="not_billed") == [MISSING]
    assert subjects(books, partner="jp") == [LONG, W]
    assert subjects(books, partner="Nippon", month="2026-09") == [LONG, W]
    assert subjects(books, partner=EVIL, severity="low") == [U]
    assert subjects(books, severity="medium", rule="different") == [Y]
    assert subjects(books, state="assigned") == []


@pytest.mark.long
def test_an_unknown_value_is_refused_with_what_is_possible(books: Stores) -> None:
    for name, value, possible in (
        ("rule", "other", "billed_twice, different, disappeared, not_billed"),
        ("partner", "nobody", rf"{ESCAPED}, Nippon, first, jp"),
        ("month", "2026-9", "2026-09."),
        ("severity", "grave", "high, low, medium"),
        ("state", "closed", "assigned, open, resolved"),
        ("break_id", "B1", "B"),
    ):
        with pytest.raises(ConfigurationError) as error:
            take(books, RESOLVE, **{name: value})
        assert f"have no {name} `{value}`" in str(error.value)
        assert f"Possible values: {possible}" in str(error.value)
    with pytest.raises(ConfigurationError, match="none to resolve: resolve takes no owner"):
        take(books, BreakDecision("resolve", "why", "bob"), partner="jp")
    with pytest.raises(ConfigurationError, match="No break and no filter is given"):
        take(books)
    assert decided(books) == []


@pytest.mark.long
def test_breaks_are_assigned_resolved_and_reopened(books: Stores, tmp_path: Path) -> None:
    before = filled(books, tmp_path / "breaks.xlsx", {W: {"decision": "resolve", "reason": "a"}})
    break_id = next(each["break_id"] for each in listed(books) if each["subject"] == W)
    assert take(books, BreakDecision("assign", "knows them", "bob"), partner="jp") == 2
    assert take(books, partner="jp", break_id=break_id) == 1
    publish(books, mapping=ACCEPTING, billing=[*BILLS, bill("d", line("x"))])
    assert subjects(books, state="assigned") == [LONG]
    assert subjects(books) == [LONG, "x", Y, U]
    (gone,) = listed(books, rule="not_billed", state="resolved")
    assert gone["resolved_by"] == "evidence"
    with pytest.raises(ConfigurationError, match="none to reopen"):
        take(books, BreakDecision("reopen", "wrong"), rule="not_billed")
    (row,) = listed(books, break_id=break_id)
    assert (row["state"], row["owner"], row["reason"]) == ("resolved", "bob", "seen")
    with pytest.raises(ConfigurationError, match=r"1 breaks match break_id=.* none to resolve"):
        take(books, break_id=break_id)
    with pytest.raises(ConfigurationError, match="Row 3: the break is resolved, so no resolve"):
        read_decisions(books, before)
    twice = tmp_path / "twice.csv"
    rows = f"{break_id},200,2,reopen,,a\n" * 2
    twice.write_text(f"break_id,difference,rows,decision,owner,reason\n{rows}")
    with pytest.raises(ConfigurationError, match=f"Row 3: break `{break_id}` is in the file twice"):
        read_decisions(books, twice)
    assert take(books, BreakDecision("reopen", "wrong"), partner="jp") == 1
    kinds = [(kind, owner) for kind, owner, _reason, _difference in decided(books)]
    assert kinds[:2] == [("break_assign", "bob")] * 2
    assert kinds[2:] == [("break_resolve", None), ("break_reopen", None)]
    assert {difference for *_, difference in decided(books)[2:]} == {"200.000000"}


def test_a_currency_of_that_name_is_not_the_lack_of_one() -> None:
    about = {"uncertain": None, "difference": Decimal(5), "rule": "different", "own_source": None}
    rows = [{"currency": currency, **about} for currency in (None, "None", "EUR", None)]
    found = [(each["currency"], each["breaks"], each["difference"]) for each in totals(rows)]
    assert found == [("EUR", 1, 5), ("None", 1, 5), (None, 2, 10)]


def test_without_breaks_it_says_why(stores: Stores) -> None:
    with pytest.raises(PartnerSyncError, match="Nothing is published yet"):
        subjects(stores)
    read(stores, Reading([{"id": "u", "amount": "1.10"}]))
    build_with_books(stores)
    with pytest.raises(ConfigurationError, match=r"no breaks of reconciliation. Nothing is mapped"):
        subjects(stores)
    with pytest.raises(ConfigurationError, match="`partner-sync mapping propose`"):
        take(stores, rule="different")


def filled(stores: Stores, file: Path, cells: dict[str, Cells], sep: str = ",") -> Path:
    """Write the breaks to a workbook, fill in cells by the subject of the row, and save it."""
    book = file.with_name("written.xlsx")
    if not book.exists():
        write_file(list_breaks(stores, BreakFilter()).breaks, book)
    table = pd.read_excel(book, dtype=str, keep_default_na=False).astype(object)
    for subject, values in cells.items():
        table.loc[table["subject"] == subject, list(values)] = list(values.values())
    if file.suffix == ".xlsx":
        table.to_excel(file, index=False)
    else:
        table.to_csv(file, index=False, encoding="utf-8-sig", sep=sep)
    return file


@pytest.mark.parametrize(
    ("name", "sep"), [("breaks.xlsx", ""), ("breaks.csv", ","), ("breaks.csv", ";")]
)
def test_decisions_in_a_workbook_are_read_back(
    books: Stores, tmp_path: Path, name: str, sep: str
) -> None:
    cells: dict[str, Cells] = {
        LONG: {"decision": "resolve", "reason": "agreed; paid, in full"},
        W: {"decision": " Assign", "owner": "bob", "reason": "NA"},
        U: {"decision": "resolve", "reason": "a cent", "difference": 0.01, "rows": 2},
    }
    file = filled(books, tmp_path / name, cells, sep)
    assert record_decisions(books, read_decisions(books, file)) == "Recorded 3 decisions."
    assert [found[:3] for found in decided(books)] == [
        ("break_resolve", None, "agreed; paid, in full"),
        ("break_assign", "bob", "NA"),
        ("break_resolve", None, "a cent"),
    ]


def test_an_owner_of_spaces_is_none() -> None:
    decision = BreakDecision("assign", "agreed", "  ")
    assert decision.problem({"state": "open", "gone_at": None}) == "it has no owner"


WRONG: list[tuple[Cells, str]] = [
    ({"break_id": "B1"}, "unknown break `B1`"),
    ({"decision": "close"}, "unknown decision `close`, use assign, resolve, reopen"),
    ({"decision": ""}, "unknown decision ``"),
    ({"reason": " "}, "it has no reason"),
    ({"decision": "assign"}, "it has no owner"),
    ({"decision": "reopen"}, "the break is open, so no reopen"),
    ({"difference": "200.01"}, "difference was `200.01` in the file and is 200.000000 now"),
    ({"difference": "200,01"}, "difference was `200,01` in the file"),
    ({"rows": "sNaN"}, "rows was `sNaN` in the file"),
    ({"rows": "3"}, "rows was `3` in the file and is 2"),
]


def test_one_wrong_row_refuses_the_file(books: Stores, tmp_path: Path) -> None:
    right = {"decision": "resolve", "reason": "agreed"}
    for cells, problem in WRONG:
        rows = {LONG: right, W: right | cells, U: right}
        file = filled(books, tmp_path / "breaks.csv", rows)
        with pytest.raises(ConfigurationError) as error:
            read_decisions(books, file)
        assert f"Row 3: {problem}" in str(error.value)
        assert "Row 2" not in str(error.value)
    assert decided(books) == []


def test_another_file_is_refused(books: Stores, tmp_path: Path) -> None:
    head = b"break_id,difference,rows,decision,owner"
    for name, content, problem in (
        ("a.xlsx", b"no workbook", "cannot be read"),
        ("a.csv", b"\xff\xfe", "cannot be read"),
        ("a.csv", b"", "cannot be read"),
        ("a.csv", b"break_id,reason\nB1,paid, in full\n", "cannot be read"),
        ("a.csv", head + b"\n", "no column reason"),
        ("a.csv", head + b",reason\nB1\n", "no row has a decision"),
    ):
        file = tmp_path / name
        file.write_bytes(content)
        with pytest.raises(ConfigurationError, match=problem):
            read_decisions(books, file)
        with pytest.raises(ConfigurationError, match="exists already"):
            write_file(list_breaks(books, BreakFilter()).breaks, file)
        assert file.read_bytes() == content


@pytest.mark.long
def test_commands_show_breaks_and_build_after_decisions(books: Stores, tmp_path: Path) -> None:
    cli = Cli(books.home)
    text = cli("breaks").stdout
    assert ESCAPED in text
    assert "in 1 break" not in text  # a credit note may not have been read
    assert "Totals do not include uncertain breaks." in text
    assert "High from EUR 5, JPY 100; medium from 10 % of it." in text
    assert "Proposed from what was billed" not in text
    assert "No breaks match state=assigned." in cli("breaks", "--state", "assigned").stdout
    found = cli.json("breaks", "--rule", "not_billed")
    assert ([each["subject"] for each in found["breaks"]], found["totals"]) == ([MISSING], [])
    refused = cli("breaks", "resolve", "--partner=jp", "--reason=why", code=2).stderr
    assert "Nothing was changed: nobody can be asked.\nRun the same command with --yes." in refused
    before = cli("breaks", "--partner=jp", "resolve", "--reason=why", code=2).stderr
    assert "Options stand before `resolve`." in before
    assert decided(books) == []
    file = tmp_path / "breaks.xlsx"
    assert "difference: Excel keeps 15 digits" in cli("breaks", f"--xlsx={file}").stdout
    cli("breaks", "assign", found["breaks"][0]["break_id"], "--owner=bob", "--reason=why", "--yes")
    cli("breaks", "resolve", "--partner=jp", "--reason=why", "--yes")
    assert [each[0] for each in decided(books)] == ["break_assign", *["break_resolve"] * 2]
    assert subjects(books, state="assigned") == [MISSING]
    assert "no row has a decision" in cli("breaks", "decide", str(file), code=2).stderr
