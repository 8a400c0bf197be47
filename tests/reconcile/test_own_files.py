"""Files of own books: each row once, as it stands there, or the reason why the file is not read."""

import csv
import re
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.core.files import write_durably
from pipelines.finance.books import make_books
from pipelines.finance.mapping import parse_mapping
from pipelines.finance.own_mapping import OwnSource
from pipelines.finance.reconcile.own.database import TableRows
from pipelines.finance.reconcile.own.not_read import NotRead
from pipelines.finance.reconcile.own.sources import find_files, load_texts
from tests.effort import EFFORT
from tests.reconcile.books import MAPPING
from tests.reconcile.own import HEAD, LEDGER, METER, publish_own
from tests.versions.homes import Stores, home_of

own = home_of(publish_own)
ROLES = """
[own.x.roles]
id = "Bill"
partner = "row"
amount = "Amount"
currency = "id_text"
"""
NAMES = ["Bill", "row", "Amount", "id_text", "file_row_number"]
ROW = ["b1", "first", "5.00", "EUR", "9"]


def source_of(file: str) -> OwnSource:
    text = f'{MAPPING}[own.x]\nagainst = "billing"\nconnection = "acme"\nfile = "{file}"\n{ROLES}'
    return parse_mapping(text).own["x"]


def read(folder: Path, file: str) -> list[tuple[Any, ...]]:
    """Return row, identifier, partner, amount and currency of each row, as texts."""
    with duckdb.connect() as db:
        db.execute("CREATE TABLE got (file INT, row INT, texts VARCHAR[])")
        texts = "[id_text, partner_text, amount_text, currency_text]"
        load_texts(
            db,
            source_of(file),
            folder,
            lambda query, file: f"INSERT INTO got SELECT {file}, row, {texts} FROM ({query})",
        )
        return [
            (row, *values)
            for row, values in db.execute(
                "SELECT row, texts FROM got ORDER BY file, row"
            ).fetchall()
        ]


CELL = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=5
).filter(str.strip)


@pytest.mark.long
@settings(max_examples=20 * EFFORT, deadline=None)
@given(
    rows=st.lists(st.tuples(CELL, CELL, CELL, CELL, CELL), min_size=1, max_size=4),
    delimiter=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
)
@example(
    rows=[("'x", "y'", "#", "a,b", "1"), ("x'", "'y", "#2", '"', "\n")], delimiter=",", end="\n"
)
def test_a_csv_file_has_the_cells_that_were_written(
    rows: list[tuple[str, ...]],
    delimiter: str,
    end: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    with (folder / "x.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator=end).writerows([NAMES, *rows])
    assert read(folder, "x.csv") == [(number, *row[:4]) for number, row in enumerate(rows, 2)]


def test_a_quote_behind_many_rows_is_one(tmp_path: Path) -> None:
    lines = [",".join(NAMES), *["b,p,5.00,EUR,"] * 60_000, '"x,1",p,"5.00",EUR,']
    (tmp_path / "x.csv").write_text("\n".join(lines))
    rows = read(tmp_path, "x.csv")
    assert len(rows) == 60_001
    assert rows[-1] == (60_002, "x,1", "p", "5.00", "EUR")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_behind_blank_lines_have_the_numbers_that_other_programs_show(
    end: str, tmp_path: Path
) -> None:
    """A line end in a cell begins no row."""
    lines = [",".join(NAMES), "", 'a,"p\n\nq",1,EUR,', "", "", "b,p,2,EUR,", "c,p,3,EUR,", "", ""]
    (tmp_path / "x.csv").write_text(end.join(lines), newline="")
    rows = [(row, bill) for row, bill, *_others in read(tmp_path, "x.csv")]
    assert rows == [(3, "a"), (6, "b"), (7, "c")]


def parquet(folder: Path, **values: str) -> Path:
    """Write a Parquet file of one row, with expressions in place of texts."""
    file = folder / "x.parquet"
    texts = dict(zip(NAMES, [f"'{text}'" for text in ROW], strict=True)) | values
    columns = ", ".join(f'{value} AS "{name}"' for name, value in texts.items())
    with duckdb.connect() as db:
        db.execute(f"COPY (SELECT {columns}) TO '{file}' (FORMAT parquet)")
    return file


def workbook(folder: Path, *others: list[list[Any]], rows: int = 1) -> Path:
    """Write a workbook with a sheet of rows, and further ones."""
    book = openpyxl.Workbook()
    for sheet in ([NAMES, *[ROW] * rows], *others):
        added = book.create_sheet()
        for cells in sheet:
            added.append(cells)
    book.remove(book.worksheets[0])
    book.save(folder / "x.xlsx")
    return folder / "x.xlsx"


def change_sheet(file: Path, change: Callable[[bytes], bytes]) -> None:
    with zipfile.ZipFile(file) as before:
        parts = {name: before.read(name) for name in before.namelist()}
    with zipfile.ZipFile(file, "w") as after:
        for name, content in parts.items():
            after.writestr(name, change(content) if name.endswith("sheet1.xml") else content)


def test_a_column_may_have_any_name_and_its_folder_too(tmp_path: Path) -> None:
    folder = tmp_path / "id_text=USD"
    folder.mkdir()
    parquet(folder)
    (folder / "x.csv").write_text(f"{','.join(NAMES)}\n{','.join(ROW)}\n")
    assert read(tmp_path, "id_text=USD/x.parquet") == [(1, "b1", "first", "5.00", "EUR")]
    assert read(tmp_path, "id_text=USD/x.csv") == [(2, "b1", "first", "5.00", "EUR")]


@pytest.mark.parametrize("size", [b"A1", b"A1:E3"])
def test_a_workbook_has_more_rows_than_it_says(size: bytes, tmp_path: Path) -> None:
    file = workbook(tmp_path, [["a note"]], rows=5)
    change_sheet(
        file, lambda text: re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="%s"' % size, text)
    )
    assert len(read(tmp_path, "x.xlsx")) == 5


@pytest.mark.parametrize(
    ("number", "text"),
    [("12.34::FLOAT", "12.34"), ("100000.1::FLOAT", "100000.1"), ("0.1::DOUBLE + 0.2", "0.3")],
)
def test_a_float_has_the_digits_that_it_tells_apart(number: str, text: str, tmp_path: Path) -> None:
    parquet(tmp_path, Amount=number, Bill="1001::DOUBLE")
    assert read(tmp_path, "x.parquet") == [(1, "1001", "first", text, "EUR")]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def over(file: Path, start: int, end: int) -> None:
    content = bytearray(file.read_bytes())
    content[start:end] = b"\xff" * len(content[start:end])
    file.write_bytes(content)


def as_csv(*lines: str) -> Callable[[Path], None]:
    return lambda folder: write_durably(folder / "x.csv", "\n".join(lines).encode())


def repeated(folder: Path) -> None:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.append([*NAMES, "Amount"])
    book.save(folder / "x.xlsx")


def inexact_cell(folder: Path) -> None:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.append(NAMES)
    sheet.append([1234567890123456.0 * 10, *ROW[1:]])
    book.save(folder / "x.xlsx")


def linked(folder: Path) -> None:
    (folder / "ok.csv").write_text("")
    (folder / "x.csv").symlink_to(folder / "not-mounted.csv")


DAMAGED: list[tuple[str, Callable[[Path], object], str]] = [
    ("*.csv", as_csv("Bill,row,Amount,Amount,id_text"), "2 columns Amount"),
    ("*.csv", as_csv(",".join(NAMES), "b1,first"), "Line: 2"),
    ("*.csv", as_csv(",".join(NAMES), '"b1"x,first,5,EUR,'), "Line: 2"),
    ("*.csv", as_csv(""), "has no column Bill"),
    ("*.xlsx", repeated, "2 columns Amount"),
    ("*.xlsx", inexact_cell, "more digits than a float"),
    ("*.xlsx", lambda folder: workbook(folder, [NAMES, ROW]), "only the first sheet is read"),
    ("*.xlsx", lambda folder: cut(workbook(folder)), "x.xlsx cannot be read"),
    (
        "*.xlsx",
        lambda folder: change_sheet(workbook(folder), lambda text: text[: len(text) // 2]),
        "x.xlsx cannot be read",
    ),
    ("*.parquet", lambda folder: cut(parquet(folder)), "x.parquet cannot be read"),
    ("*.parquet", lambda folder: over(parquet(folder), 8, 40), "x.parquet cannot be read"),
    ("*.parquet", lambda folder: over(parquet(folder), -60, -20), "x.parquet cannot be read"),
    ("*.parquet", lambda folder: parquet(folder, Bill="12345678901234567::DOUBLE"), "more digits"),
    ("*.parquet", lambda folder: parquet(folder, Bill="12345678::FLOAT"), "more digits"),
    ("*", lambda folder: (folder / "2025").mkdir(), "is a folder"),
    ("*.csv", linked, "is no file"),
    ("x**.csv", as_csv(""), "cannot be read"),
]


@pytest.mark.parametrize(("pattern", "damage", "reason"), DAMAGED)
def test_a_file_that_cannot_be_read_whole_says_why(
    pattern: str, damage: Callable[[Path], object], reason: str, tmp_path: Path
) -> None:
    damage(tmp_path)
    with pytest.raises(NotRead, match=reason):
        read(tmp_path, pattern)


def test_what_excel_has_open_is_no_own_file(tmp_path: Path) -> None:
    for name in ("~$x.xlsx", ".hidden", "x.csv"):
        (tmp_path / name).write_text("")
    assert [file.name for file in find_files(tmp_path, "*")] == ["x.csv"]


def test_two_roles_may_have_one_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.db"
    with sqlite3.connect(file) as db:
        db.execute('CREATE TABLE lines ("Bill", "Amount", id_text)')
        db.execute("INSERT INTO lines VALUES ('b1', '5.00', 'EUR')")
    monkeypatch.setenv("X_URL", f"sqlite:///{file}")
    roles = ROLES.replace('"row"', '"Bill"')
    text = '[own.x]\nagainst = "billing"\nconnection = "acme"\nurl_variable = "X_URL"\n'
    source = parse_mapping(f'{MAPPING}{text}table = "lines"\n{roles}').own["x"]
    with duckdb.connect() as db:
        db.execute("CREATE TABLE got (id VARCHAR, partner VARCHAR)")
        query = "INSERT INTO got SELECT id_text, partner_text FROM ({})".format
        load_texts(db, source, tmp_path, lambda texts, file: query(f"SELECT {file}, * {texts}"))
        assert db.sql("FROM got").fetchall() == [("b1", "b1")]


@pytest.mark.long
def test_a_damaged_file_takes_nothing_else_down(own: Stores) -> None:
    query = "SELECT rule FROM reconciliation.rules WHERE NOT evaluated"
    not_evaluated = {rule for (rule,) in own.rows(query)}
    cut(parquet(own.home.root))
    mapping = MAPPING + LEDGER.replace("ledger/*.csv", "x.parquet") + METER
    write_durably(own.home.mapping_file, mapping.encode())
    assert make_books(own).is_new
    found = dict(own.rows("SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated"))
    assert found.keys() - not_evaluated == {"own_ledger"}
    assert "x.parquet cannot be read" in found["own_ledger"]


@pytest.mark.long
def test_a_day_out_of_range_is_not_understood(own: Stores) -> None:
    days = ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:00"]
    lines = [HEAD, *[f"x,first,{day},1.00,EUR" for day in days], "b1,first,2026-09-30,5.00,EUR"]
    write_durably(own.home.root / "ledger/2026-09.csv", "\n".join(lines).encode())
    mapping = MAPPING + LEDGER.replace("[own.ledger.roles]", "fewest_rows = 1\n[own.ledger.roles]")
    write_durably(own.home.mapping_file, mapping.encode())
    assert make_books(own).is_new
    assert own.rows("SELECT sent FROM reconciliation.own_unread ORDER BY sent") == [
        (day,) for day in days
    ]


def test_a_database_that_is_not_there_is_not_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X_URL", f"sqlite:///{tmp_path / 'x.db'}")
    rows = TableRows("X_URL", "lines", {"amount": "Amount"})
    with pytest.raises(NotRead, match="the file that X_URL names is not there"):
        list(rows)
    assert list(tmp_path.iterdir()) == []
