"""What is exported is what was sent: every value, in every format, or a clear refusal."""

import csv
import gc
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET
from zipfile import ZipFile

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import make_url

from pipelines.app.export import ExportRequest, export_tables
from pipelines.app.export_sql import target_table
from pipelines.app.export_table import list_tables
from pipelines.app.progress import Progress
from pipelines.core.errors import ConfigurationError, PartnerSyncError, StorageFailed
from pipelines.publish.build import build
from tests.app.conftest import session_of
from tests.publish.homes import Reading, copy_home, read
from tests.warehouse.versions import full_disk

TEXTS: tuple[str | None, ...] = (
    *("=1+1", "+1", "-1", "@SUM(A1)", "\tx", "https://example.com", "{=1}", "NaN", "inf", "NULL"),
    *(None, "", " ", 'a,"b"\r\nc\rd', "\x00\x01\x1f\ufffe\uffff", "_x0041_", "<b>&amp;</b>", "é🎈"),
)
AMOUNTS = (
    *("0.10", "-0.01", "9.00000000000001", "123456789012.345"),
    *("1234567890123456", "12345678901234567890.12345678"),
)
TIMES = ("0001-01-03T00:00:00Z", "9999-12-29T23:59:59.999Z", "2026-10-01T01:00:00.123456+05:30")
DAYS = ("0001-01-01", "1899-12-31", "1900-03-01", "9999-12-31")
LISTS: tuple[Any, ...] = (["a,b", None, "", "NULL", '"'], [], None, ["x"])
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"  # of a workbook's elements
META = "columns completeness decisions findings freshness loads requests runs"
RECORDS = [
    {
        "id": f"r{number:02}",
        "text": text,
        "amount": AMOUNTS[number % len(AMOUNTS)],
        "at": TIMES[number % len(TIMES)],
        "day": DAYS[number % len(DAYS)],
        "flag": number % 2 == 0,
        "size": 9007199254740993 + 2 * number,
        "tags": LISTS[number % len(LISTS)],
        "prices": ["0.10", "12345678901234567890.12"],
    }
    for number, text in enumerate(TEXTS)
]


@pytest.fixture(scope="session")
def odd_home(tmp_path_factory: pytest.TempPathFactory, empty_home: Path) -> Path:
    """A home whose version 1 has the rows of RECORDS in acme/usage."""
    stores = copy_home(empty_home, tmp_path_factory.mktemp("odd") / "home")
    read(stores, Reading(RECORDS, page_size=100))
    build(stores)
    stores.metadata.close()
    return stores.settings.home


Export = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def export(odd_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Export]:
    """Exports from a copy of that home; `url` becomes the variable BOOKS_URL."""
    stores = copy_home(odd_home, tmp_path / "home")
    session = session_of(stores)

    def run(target: str, *tables: str, folder: Path | None = None, url: str = "") -> Any:
        monkeypatch.setenv("BOOKS_URL", url)
        return export_tables(session, ExportRequest(target, tables, folder), Progress())

    yield run
    stores.metadata.close()


def file_of(exported: list[dict[str, Any]]) -> Path:
    (row,) = exported
    assert (row["table"], row["rows"]) == ("current.usage", len(RECORDS))
    return Path(row["exported_to"])


def as_json(items: Sequence[Any] | None) -> str | None:
    return None if items is None else json.dumps(items, separators=(",", ":"), ensure_ascii=False)


def test_csv_has_every_value_and_tells_null_from_empty(export: Export) -> None:
    file = file_of(export("csv"))
    with file.open(encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source))
    for row, record in zip(rows, RECORDS, strict=True):
        assert row["text"] == (record["text"] or "")
        assert Decimal(row["amount"]) == Decimal(record["amount"])
        assert (row["day"], row["size"]) == (record["day"], str(record["size"]))
        assert datetime.fromisoformat(row["at"]).astimezone(UTC) == datetime.fromisoformat(
            record["at"]
        ).astimezone(UTC)
        assert row["tags"] == (as_json(record["tags"]) or "")
        assert row["prices"] == '["0.10","12345678901234567890.12"]'
    sniffed = f"read_csv('{file}', all_varchar = true, allow_quoted_nulls = false)"
    found = duckdb.sql(f"SELECT exported.text FROM {sniffed} AS exported").fetchall()
    assert [text for (text,) in found] == [record["text"] for record in RECORDS]


def test_parquet_has_every_value_and_type(export: Export) -> None:
    table = pq.read_table(file_of(export("parquet")))
    kinds = {name: table.schema.field(name).type for name in ("amount", "at", "day", "tags")}
    assert kinds == {
        "amount": pa.decimal128(38, 14),
        "at": pa.timestamp("us", "UTC"),
        "day": pa.date32(),
        "tags": pa.list_(pa.field("element", pa.string())),
    }
    for row, record in zip(table.to_pylist(), RECORDS, strict=True):
        assert (row["text"], row["tags"]) == (record["text"], record["tags"])
        assert (row["size"], row["flag"]) == (record["size"], record["flag"])
        assert row["amount"] == Decimal(record["amount"])
        assert row["at"] == datetime.fromisoformat(record["at"]).astimezone(UTC)
        assert row["day"].isoformat() == record["day"]


class Cell(NamedTuple):
    """One cell of a workbook. `type` is inlineStr, b, or n for numbers and times."""

    type: str
    text: str

    def day(self) -> str:
        if self.type == "inlineStr":
            return self.text
        return (date(1899, 12, 30) + timedelta(int(self.text))).isoformat()

    def time(self) -> datetime:
        """Read a time as Excel does: to the millisecond."""
        if self.type == "inlineStr":
            return datetime.fromisoformat(self.text).astimezone(UTC)
        milliseconds = round(Decimal(self.text) * 24 * 3600 * 1000)
        return datetime(1899, 12, 30, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def read_cells(file: Path) -> list[dict[str, Cell]]:
    """Return the rows below the headings, by heading, read without the library that wrote it."""
    with ZipFile(file) as archive:
        sheet = ET.fromstring(archive.read("xl/worksheets/sheet1.xml"))  # noqa: S314 - our own
    assert not list(sheet.iter(f"{MAIN}f")), "a formula"
    assert not list(sheet.iter(f"{MAIN}hyperlink")), "a link"
    rows = [
        {re.sub(r"\d", "", cell.attrib["r"]): _cell(cell) for cell in row.iter(f"{MAIN}c")}
        for row in sheet.iter(f"{MAIN}row")
    ]
    names = {at: cell.text for at, cell in rows[0].items()}
    return [{names[at]: cell for at, cell in row.items()} for row in rows[1:]]


def _cell(cell: ET.Element) -> Cell:
    text = "".join(each.text or "" for tag in ("t", "v") for each in cell.iter(MAIN + tag))
    unescaped = re.sub("_x([0-9A-F]{4})_", lambda found: chr(int(found[1], 16)), text)
    return Cell(cell.get("t", "n"), unescaped)


def test_a_workbook_has_exact_numbers_and_text_that_is_no_formula(export: Export) -> None:
    (exported,) = export("xlsx")
    assert exported["numbers_as_text"] == ["size", "amount"]
    for row, record in zip(read_cells(Path(exported["exported_to"])), RECORDS, strict=True):
        text = None if record["text"] is None else Cell("inlineStr", record["text"])
        assert row.get("text") == text
        is_short = len(record["amount"].strip("-").replace(".", "")) <= 15
        assert row["amount"].type == ("n" if is_short else "inlineStr")
        assert Decimal(row["amount"].text) == Decimal(record["amount"])
        assert row["size"] == Cell("inlineStr", str(record["size"]))
        assert row["flag"] == Cell("b", "1" if record["flag"] else "0")
        assert row.get("tags", Cell("", "")).text == (as_json(record["tags"]) or "")
        assert row["day"].day() == record["day"]
        assert row["at"].time() == datetime.fromisoformat(record["at"]).astimezone(UTC)


def test_a_database_has_exact_values(export: Export, tmp_path: Path) -> None:
    for _ in range(2):  # the second one replaces the first
        (exported,) = export("BOOKS_URL", url=f"sqlite:///{tmp_path}/books.db")
    assert exported["exported_to"] == "usage in BOOKS_URL"
    with closing(sqlite3.connect(tmp_path / "books.db")) as db:
        db.row_factory = sqlite3.Row
        rows = db.execute("SELECT *, typeof(amount) AS kind FROM usage ORDER BY _key").fetchall()
    for row, record in zip(rows, RECORDS, strict=True):
        assert row["text"] == record["text"]
        assert (row["kind"], Decimal(row["amount"])) == ("text", Decimal(record["amount"]))
        assert (row["size"], row["flag"]) == (record["size"], record["flag"])
        assert row["day"] == record["day"]
        assert datetime.fromisoformat(row["at"]).replace(tzinfo=UTC) == datetime.fromisoformat(
            record["at"]
        ).astimezone(UTC)
        assert row["tags"] == as_json(record["tags"])


TEXTS_OF = {
    "sqlite": "TEXT",
    "postgresql+psycopg": "TEXT",
    "mysql+pymysql": "LONGTEXT",
    "mssql+pyodbc": "NTEXT",
    "oracle+oracledb": "CLOB",
}


@pytest.mark.parametrize(("driver", "text"), TEXTS_OF.items(), ids=TEXTS_OF)
def test_every_database_gets_decimals_exactly(driver: str, text: str) -> None:
    decimal = text if driver == "sqlite" else "NUMERIC(38, 8)"
    dialect = make_url(f"{driver}://").get_dialect()()
    with duckdb.connect() as db:
        db.execute("CREATE SCHEMA current")
        db.execute("CREATE TABLE current.usage (amount DECIMAL(38, 8), text VARCHAR, list INT[])")
        target = target_table(list_tables(db)["current.usage"], dialect)
    types = [column.type.compile(dialect) for column in target.columns]
    assert types == [decimal, text, text]


def test_a_failed_export_leaves_the_table_as_it_was(export: Export, tmp_path: Path) -> None:
    file, tables = tmp_path / "books.db", ("current.usage", "meta.columns")
    url = f"sqlite:///{file}"
    export("BOOKS_URL", url=url)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("DELETE FROM usage WHERE _key > 'r03'")
    with full_disk(file.stat().st_size), pytest.raises(StorageFailed, match="BOOKS_URL: ") as error:
        export("BOOKS_URL", *tables, url=url)
    assert str(tmp_path) not in str(error.value)
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT count(*) FROM usage").fetchone() == (4,)


URLS = {
    "no URL": "nothing",
    "no dialect": "nobody://u:s3cret-word@host/db",
    "no driver": "postgresql+nothing://u:s3cret-word@host/db",
    "no port": "postgresql://u:s3cret-word@host:s3cret-word/db",
    "no folder": "sqlite:////s3cret-word/nowhere/books.db",
}


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_a_url_that_cannot_be_used_is_never_shown(url: str, export: Export) -> None:
    with pytest.raises(PartnerSyncError, match="BOOKS_URL") as error:
        export("BOOKS_URL", url=url)
    assert "s3cret" not in f"{error.value} {error.value.remedy}"


def test_what_is_unknown_is_refused(export: Export, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^Unknown format `pdf`\. Use csv, parquet, xlsx"):
        export("pdf")
    with pytest.raises(ConfigurationError, match=r"^Unknown format\. Use csv"):
        export("postgresql://u:s3cret-word@host/db")
    with pytest.raises(ConfigurationError, match=r"`current.nothing`.* current\.usage, history\."):
        export("csv", "current.nothing")
    with pytest.raises(ConfigurationError, match="is not empty"):
        export("csv", folder=tmp_path)
    with pytest.raises(ConfigurationError, match="--folder is for files"):
        export("BOOKS_URL", folder=tmp_path / "new", url="sqlite://")


def test_tables_of_every_schema_can_be_exported(export: Export, tmp_path: Path) -> None:
    titles = ("history.usage", "quarantine.records", *(f"meta.{name}" for name in META.split()))
    for target in ("csv", "parquet", "xlsx"):
        rows = export(target, *titles, folder=tmp_path / "new" / target)
        assert [row["table"] for row in rows] == list(titles)
        names = {file.name for file in (tmp_path / "new" / target).iterdir()}
        assert names == {f"{title.replace('.', '__')}.{target}" for title in titles}


def test_an_export_is_private_and_appears_whole(export: Export, tmp_path: Path) -> None:
    folder = file_of(export("csv")).parent
    assert folder == tmp_path / "home" / "exports" / "v00000001-csv"
    assert (folder.stat().st_mode & 0o777, folder.parent.stat().st_mode & 0o777) == (0o700, 0o700)
    killed = folder.with_name(f".{folder.name}.part")
    killed.mkdir()
    (killed / "usage.csv").touch()
    export("csv", "meta.loads")  # replaces it
    for target in ("csv", "parquet"):
        with full_disk(100), pytest.raises(StorageFailed, match=f"v00000001-{target} failed"):
            export(target)
    assert [file.name for file in folder.iterdir()] == ["meta__loads.csv"]
    assert list(folder.parent.iterdir()) == [folder]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_full_disk_leaves_no_workbook(export: Export, tmp_path: Path) -> None:
    with full_disk(100), pytest.raises(StorageFailed, match="v00000001-xlsx failed"):
        export("xlsx")
    assert list((tmp_path / "home" / "exports").iterdir()) == []
    gc.collect()  # xlsxwriter does not close its temporary file then
