"""The working paper of a closed month: totals are formulas over rows, and what is signed."""

import json
import re
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pytest
from markupsafe import escape
from openpyxl.utils import get_column_letter
from xlsxwriter import Workbook

from pipelines.finance.close import list_closes
from pipelines.finance.closing import paper_rows, write
from pipelines.finance.closing.accrual import read_written_months
from pipelines.finance.closing.cells import Sheet, Styles
from pipelines.finance.closing.holding import copies_with, remarks_with
from pipelines.finance.closing.paper_rows import SIGNS
from pipelines.finance.closing.sheets import Paper, Table
from pipelines.finance.reconcile.close_copy import MANIFEST
from tests.cli.conftest import Cli
from tests.effort import EFFORT
from tests.finance.any_closes import closed_in_turn
from tests.finance.test_verify_copy import publish_two
from tests.finance.workbooks import (
    Totals,
    evaluate,
    exact,
    figures_of,
    read_totals,
    signed_totals,
)
from tests.reconcile.books import FIRST, bill, decide, line, partners, publish, used
from tests.reconcile.months import ACCOUNTS, SERVICE, TERMS, close, publish_months
from tests.versions.homes import Stores, home_of

two = home_of(publish_two)
books = home_of(publish_months)
SHEETS = [
    *("summary", "used", "billed", "matching", "breaks", "corrections", "opening"),
    *("open items", "roll-forward", "accrual", "sign-off"),
]
WITHOUT_SIGNS = ("used", "billed", "journal", "sign-off")
# An accrual and its reversal are no sum.
BY_KIND = """
SELECT
    lines.currency, lines.kind,
    sum(lines.debit::DECIMAL(38, 4)), sum(lines.credit::DECIMAL(38, 4))
FROM read_csv('{}', all_varchar = true) AS lines
GROUP BY ALL
"""
# What the account of accrued usage has, of a payable side.
ACCRUED = """
SELECT lines.currency, sum(ifnull(lines.credit, '0')::DECIMAL(38, 4) -
    ifnull(lines.debit, '0')::DECIMAL(38, 4)) AS amount
FROM read_csv('{}', all_varchar = true) AS lines
WHERE lines.kind = 'accrual' AND lines.account = '2190'
GROUP BY ALL
HAVING amount <> 0
"""

OF_KIND = re.compile(
    r"(\d+) (of usage and billing|with own books|uncertain) \((\d+) above materiality\)"
)
OPEN_BREAKS = """
SELECT
    if(uncertain IS NULL, if(own_source IS NULL, 'of usage and billing', 'with own books'),
        'uncertain') AS kind, count(*), count_if(severity = 'high')
FROM '{}' WHERE state <> 'resolved' GROUP BY ALL ORDER BY kind
"""


def require_readable(file: Path) -> None:
    """Require that no cell is cut, that headings stay in sight, and that A4 has all columns."""
    for sheet in openpyxl.load_workbook(file, data_only=True):
        assert sheet.freeze_panes, sheet.title
        head = int(sheet.freeze_panes[1:]) - 1
        assert sheet.print_title_rows == f"${head}:${head}"
        assert sheet.page_setup.orientation == "landscape"
        assert (sheet.page_setup.paperSize, sheet.page_setup.fitToHeight) == (9, 0)
        printed = [cell.value for cell in sheet[head] if cell.value]
        printed = [value for value in printed if not value.endswith("minor units")]
        _name, _separator, area = sheet.print_area.partition("!")
        assert area == f"$A$1:${get_column_letter(len(printed))}${sheet.max_row}"
        for row in sheet.iter_rows(min_row=head):
            for cell in row:
                require_room(sheet, cell)


def require_room(sheet: Any, cell: Any) -> None:
    """Require that a column is as wide as what a cell shows, or that the cell has several lines."""
    if cell.value is None or str(cell.value).startswith("Total "):
        return
    shown = str(cell.value)
    if isinstance(cell.value, int | float):
        digits = len(cell.number_format.partition(".")[2])
        shown = f"{cell.value:,.{digits}f}" if "#" in cell.number_format else shown
    width = sheet.column_dimensions[cell.column_letter].width
    assert len(shown) < width or cell.alignment.wrap_text, (sheet.title, cell.coordinate, shown)


def require_signed(folder: Path) -> None:
    """Require every total of the working paper in a copy: computed here, and as it is cached."""
    file = next(folder.glob("*.xlsx"))
    expected = signed_totals(json.loads((folder / MANIFEST).read_bytes()))
    # A currency in which a sheet has no row has no total there.
    found = evaluate(file)
    assert read_totals(file) == found
    require_journal(folder, found)
    require_accrual(folder, found)
    require_sign_off(folder)
    require_ages(folder)
    totals = exact(found)
    expected = {key: total for key, total in expected.items() if total or key in totals}
    assert {key: totals.get(key) for key in expected} == expected
    assert all(total == 0 for key, total in totals.items() if key not in expected)


def require_journal(folder: Path, found: Totals) -> None:
    """Require the totals of the journal, and take them out of those that are found."""
    totals = {key: found.pop(key) for key in [*found] if key[0] == "journal"}
    journal = folder / "journal.csv"
    assert bool(totals) <= journal.exists()
    if not journal.exists():
        return
    for currency, kind, debit, credit in duckdb.sql(BY_KIND.format(journal)).fetchall():
        assert debit == credit
        for heading in ("debit", "credit"):
            assert totals.pop(("journal", f"{currency}, {kind}", heading)) == debit
    assert {key[2] for key in totals} <= {"accrued"}


def require_ages(folder: Path) -> None:
    """Require that each break has its age, and the day when its bill was due, as the copy has."""
    query = f"SELECT break_id, due_on::VARCHAR, age_days FROM '{folder / 'breaks.parquet'}'"
    expected = {row[0]: row[1:] for row in duckdb.sql(query).fetchall()}
    found = {}
    for row in figures_of(next(folder.glob("*.xlsx")), "breaks"):
        if "break id" not in row:
            return  # a large month has totals of partners
        if row["break id"]:
            found[row["break id"]] = (row["due on"], row["age days"])
    assert found == expected


def require_accrual(folder: Path, found: Totals) -> None:
    """Require that each closing balance is what is accrued, and all that is not, to the cent.

    What is accrued is in the journal, and its months are those of the report. Its totals are taken
    out of those that are found.
    """
    totals = dict[str, Decimal]()
    for key in [*found]:
        sheet, of, heading = key
        if sheet == "accrual" and heading != "closing balance":
            value = number_of(found.pop(key))
            assert heading != "not explained" or value == 0
            if heading in ("accrued", "to accrue"):
                totals[of or ""] = value
    require_months(folder, totals)
    file = folder / "rollforward.parquet"
    rows = duckdb.sql(f"SELECT currency, partner, closing FROM '{file}'").fetchall()
    closing = {(currency, partner): amount for currency, partner, amount in rows}
    sums = defaultdict[str | None, Decimal](Decimal)
    for figures in figures_of(next(folder.glob("*.xlsx")), "accrual"):
        numbers = {name: number_of(value) for name, value in [*figures.items()][3:]}
        expected = closing.get((figures["currency"], figures["partner"]), 0)
        assert numbers.pop("closing balance") == expected
        assert numbers.pop("not explained") == 0
        assert sum(numbers.values()) == expected
        sums[figures["currency"]] += numbers.get("accrued", Decimal(0))
    journal = folder / "journal.csv"
    accrued = dict(duckdb.sql(ACCRUED.format(journal)).fetchall()) if journal.exists() else {}
    assert {currency: sum_ for currency, sum_ in sums.items() if sum_} == accrued


def require_sign_off(folder: Path) -> None:
    """Require that the last sheet counts each break that is not resolved once, by its kind."""
    sheet = openpyxl.load_workbook(next(folder.glob("*.xlsx")))["sign-off"]
    said = dict(sheet.iter_rows(max_col=2, values_only=True))
    found = OF_KIND.findall(said["open breaks when this was written"])
    counted = duckdb.sql(OPEN_BREAKS.format(folder / "breaks.parquet")).fetchall()
    assert sorted((kind, int(number), int(high)) for number, kind, high in found) == counted


def require_months(folder: Path, totals: dict[str, Decimal]) -> None:
    """Require that what is accrued of months, and the rounding, are what is accrued in all."""
    months: dict[str, Decimal] = {}
    for row in read_written_months(folder):
        currency = row["currency"]
        months[f"{currency}, accrued, usage of {row['month']:%Y-%m}"] = row["difference"]
    parts = {label: value for label, value in totals.items() if ", accrued, " in label}
    items = openpyxl.load_workbook(next(folder.glob("*.xlsx")))["open items"]
    if not any(cell.value == "month" for row in items.iter_rows() for cell in row):
        assert parts == {}  # it has totals of partners, and not each item
        return
    sums = defaultdict[str, Decimal](Decimal)
    for label, value in parts.items():
        sums[label.partition(", ")[0]] += value
        if "rounding" not in label:
            assert months.pop(label, 0) == value
    assert months == {}
    assert dict(sums) == {label: totals[label] for label in sums}
    assert not any(value for label, value in totals.items() if label not in (*parts, *sums))


def number_of(value: Any) -> Decimal:
    """Return the amount of a cell, also of one that is text."""
    text = str(value).partition(" (")[0]
    return Decimal(text.replace(",", "").replace("\u2212", "-"))


def test_every_total_is_a_formula_and_is_what_was_signed(two: Stores) -> None:
    for month in ("2026-09", "2026-10"):
        folder = two.home.closes / month / "001"
        require_signed(folder)
        require_readable(folder / f"{month}.xlsx")
        workbook = openpyxl.load_workbook(folder / f"{month}.xlsx")
        of_journal = ["journal"] if month == "2026-10" else []
        assert workbook.sheetnames == [*SHEETS[:-4], *of_journal, *SHEETS[-4:]]
        texts = {str(cell.value) for sheet in workbook for row in sheet.iter_rows() for cell in row}
        assert {"ann", "bob", "first"} <= texts
        for sheet in workbook:
            said = [row[0] for row in sheet.iter_rows(max_row=12, values_only=True)]
            assert said.count(SIGNS) == (sheet.title not in WITHOUT_SIGNS), sheet.title
        page = (folder / "report.html").read_text()
        assert "<html" in page
        assert page.count("Signs are the opposite of those of breaks") == 1
        assert not any("first Ltd" in text for text in (*texts, page))


@pytest.mark.long
def test_copies_that_contain_an_erased_value_are_named(two: Stores) -> None:
    before = {folder: copies_with(two, name) for folder, name in (("u", "u-none"), ("p", FIRST))}
    assert before["u"] == []
    assert [row["copy"] for row in before["p"]] == ["2026-09/001", "2026-10/001"]
    files = before["p"][0]["files"].split(", ")
    # Everything that has rows or figures of the partner; nothing has its name.
    assert {"used.parquet", "summary.parquet", "report.html", "2026-09.xlsx"} <= {*files}
    assert copies_with(two, "first Ltd") == []
    assert {row["text"] for row in remarks_with(two, "as agreed")} == {"note"}
    with two.home.mapping_file.open("a") as mapping:
        mapping.write('[accounts.partner.late]\naccrued = "2199"\n')
    printed = Cli(two.home)("erase", "late", "--reason", "asked", "--yes", "--force").stdout
    assert "2026-10/001" in printed
    assert "A signed copy never changes" in " ".join(printed.split())
    _before, kept = printed.split("your configuration")
    assert "mapping.toml" in kept.partition("reconcile")[2]
    assert [row["problem"] for row in list_closes(two)] == [None, None]


def test_a_value_with_quotes_is_found_in_copies_that_nobody_recorded(books: Stores) -> None:
    folder = books.home.closes / "2026-08" / "001"
    folder.mkdir(parents=True)
    (folder / MANIFEST).write_text("{}")
    name = """it's "x" \\ y"""
    duckdb.execute(f"COPY (SELECT $1 AS partner, 1 AS n) TO '{folder}/used.parquet'", [name])
    (folder / "report.html").write_text(str(escape(name)))
    found = [{"copy": "2026-08/001", "files": "report.html, used.parquet"}]
    assert copies_with(books, name) == found
    assert copies_with(books, "it's") == found
    assert copies_with(books, "nothing") == []


@pytest.mark.slow
def test_any_months_have_totals_that_are_signed(tmp_path: Path) -> None:
    for seed in range(10, 10 + 2 * EFFORT):
        for _stores, _books, folder in closed_in_turn(tmp_path, seed):
            require_signed(folder)


@pytest.mark.long
def test_a_large_month_has_totals_of_partners_and_pairs_that_differ(
    books: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (paper_rows, write):
        monkeypatch.setattr(module, "MOST_ROWS", 0)
    close(books)
    folder = books.home.closes / "2026-09" / "001"
    require_signed(folder)
    require_readable(folder / "2026-09.xlsx")
    workbook = openpyxl.load_workbook(folder / "2026-09.xlsx")
    assert "totals of partners" in workbook["used"]["A2"].value
    headings = ("currency", "connection", "partner", "records", "used", "used, minor units")
    assert headings in [*workbook["used"].iter_rows(values_only=True)]


ROWS = """
SELECT * FROM (VALUES
    ('EUR', 'a', 'p', 0.10), ('EUR', 'a', 'p', 0.20), ('EUR', 'a', 'q', -0.01),
    ('JPY', 'a', 'p', 5), ('KWD', 'a', 'p', 1.234), ('SEK', 'a', 'p', 0.001),
    ('USD', 'a', 'p', 9999999999999.99), ('USD', 'a', 'q', 0.01), (NULL, 'a', NULL, 2.5)
) AS rows(currency, connection, partner, amount)
"""


def test_what_a_formula_would_round_is_text_that_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.xlsx"
    with duckdb.connect() as db, Workbook(str(file), {"constant_memory": True}) as workbook:
        db.execute(f"CREATE TABLE rows AS {ROWS.replace('0.10', '0.10::DECIMAL(38, 4)')}")
        paper = Paper(workbook, db)
        table = Table("used", "Usage", "FROM rows", ("amount",))
        paper.write_table(table)
    assert evaluate(file) == {
        ("used", "EUR", "amount"): Decimal("0.29"),
        ("used", "JPY", "amount"): Decimal(5),
        ("used", "KWD", "amount"): Decimal("1.234"),
        ("used", "SEK", "amount"): "0.001 (finer than the minor unit: no formula)",
        ("used", "USD", "amount"): "10,000,000,000,000.00 (more than 15 digits: no formula)",
        ("used", None, "amount"): Decimal("2.5"),
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("=1+1", "=1+1"),
        ("<r>x</r>", "<r>x</r> "),
        (Decimal("123456789012345678.5"), "123456789012345678.5"),
        (Decimal("1.50"), 1.5),
        ("x" * 40_000, f"{'x' * 32_000}… (40,000 characters: see the table in the copy)"),
        (None, None),
    ],
)
def test_a_cell_has_a_value_as_it_is(tmp_path: Path, value: Any, expected: Any) -> None:
    file = tmp_path / "a.xlsx"
    with Workbook(str(file), {"constant_memory": True}) as workbook:
        Sheet(workbook.add_worksheet(), Styles(workbook)).put(0, 0, value)
    cell = openpyxl.load_workbook(file).active["A1"]
    assert (cell.value, cell.data_type == "f") == (expected, False)


PLANTED = """
[tolerance]
line_minor = 3
"""


def publish_planted(stores: Stores) -> None:
    """Publish one of each kind of open item, of amounts that are in no other."""
    stores.configure(**SERVICE)
    usage = [
        used("free", "7.00"),
        used("old", "3.00", day="2026-08-10"),
        used("less", "5.00"),
        used("more", "5.00"),
        used("near", "5.00"),
        used("seen", "0.70"),
        used("moved", "50.00"),
        used("stranger", "0.11", partner="nobody"),
        used("misnamed", "0.13", partner="nobody"),
        used("half", "0.004", currency="USD"),
        used("rest", "6.004", currency="CHF"),
    ]
    bills = [
        bill("a", line("less", "4.50"), line("more", "5.20"), line("near", "5.02")),
        bill("b", line("seen", "0.10")),
        bill("c", line("moved", "50.00"), month="2026-10-01"),
        bill("d", line(None, "-0.30"), kind="credit"),
        bill("e", line(None, "0.05")),
        bill("f", line("misnamed", "0.13"), partner="other"),
    ]
    mapping = TERMS + ACCOUNTS + PLANTED
    names = partners([FIRST, "other"])
    publish(stores, mapping=mapping, partners=names, usage=usage, billing=bills)
    query = "SELECT break_id FROM reconciliation.breaks WHERE difference = -0.6"
    ((break_id,),) = stores.rows(query)
    decide(stores, "break_resolve", break_id)
    publish(stores, mapping=mapping)


planted = home_of(publish_planted)


@pytest.mark.long
def test_each_kind_of_open_item_has_its_amount(planted: Stores) -> None:
    close(planted)
    folder = planted.home.closes / "2026-09" / "001"
    require_signed(folder)
    found = {}
    for figures in figures_of(folder / "2026-09.xlsx", "accrual"):
        for reason, value in [*figures.items()][3:]:
            if amount := number_of(value):
                found[figures["currency"], figures["partner"], reason] = amount
    assert {key: str(amount) for key, amount in found.items()} == {
        ("EUR", FIRST, "closing balance"): "61.13",
        ("EUR", FIRST, "accrued"): "10.5",  # of August, and what a bill lacks, too
        ("EUR", FIRST, "overbilled"): "-0.25",  # 0.05 of it without usage
        ("EUR", FIRST, "resolved"): "0.6",
        ("EUR", FIRST, "credit note without usage"): "0.3",
        ("EUR", FIRST, "within tolerance"): "-0.02",
        ("EUR", FIRST, "differences without a break"): "50",  # its bill is of October
        ("EUR", "nobody", "closing balance"): "0.24",
        ("EUR", "nobody", "unknown partner"): "0.24",
        ("EUR", "other", "closing balance"): "-0.13",
        ("EUR", "other", "opposite of unknown partner"): "-0.13",
        ("CHF", FIRST, "closing balance"): "6.004",
        ("CHF", FIRST, "accrued"): "6",
        ("CHF", FIRST, "rounding of entries"): "0.004",
        ("USD", FIRST, "closing balance"): "0.004",
        ("USD", FIRST, "rounded to zero"): "0.004",
    }


def test_each_pair_has_what_is_billed_beside_what_is_used(two: Stores) -> None:
    """Also of a pair that is equal: blank cells would say that it is not billed."""
    folder = two.home.closes / "2026-10" / "001"
    pairs = figures_of(folder / "2026-10.xlsx", "matching")
    shown = {row["usage"]: row for row in pairs if row["usage"]}
    found = {
        usage: (
            *(row["status"], row["billed partner"], row["used rows"], row["billed rows"]),
            *(row["used quantity"], row["billed quantity, net of credit notes"]),
        )
        for usage, row in shown.items()
    }
    assert found == {
        "late": ("balanced", FIRST, 1, 1, 1, 1),
        "x": ("not billed", "not billed", 1, 0, 1, -1),
    }
    assert all(row["billed"] == row["used"] for row in pairs if row["status"] == "balanced")
