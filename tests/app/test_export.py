"""What is exported is what was sent: every value, in every format, or a clear refusal."""

import csv
import gc
import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.app.export import export_tables
from pipelines.app.nightly import build_with_books
from pipelines.core.errors import ConfigurationError, PartnerSyncError, StorageFailed
from tests.versions.homes import OpenHome, Reading, Stores, read
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


def publish_odd(stores: Stores) -> None:
    """Publish the rows of RECORDS in acme/usage."""
    read(stores, Reading(RECORDS, page_size=100))
    build_with_books(stores)


# Equal for DuckDB or a database, which compare without case, once they are names of columns.
EQUAL_NAMES = ["Aa", "aA", "AA", "a__b", "a_b", "a.b", "A_B", "a b", "", " ", "%", "()", "x" * 60]
EQUAL_NAMES += ["x" * 61, "_extra", "_key", "_Key", "Straße", "STRASSE", "\ufb01eld", "field"]
EQUAL_NAMES += ["É", "é", "日付" * 25, "日付" * 25 + "時"]


def publish_equal_names(stores: Stores) -> None:
    """Publish one row of acme/usage whose fields have these names."""
    fields = {name: f"value {at}" for at, name in enumerate(EQUAL_NAMES)}
    read(stores, Reading([{"id": "r", **fields, "a": {"b": "in", "": "it"}}]))
    build_with_books(stores)


Export = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def export(open_home: OpenHome, monkeypatch: pytest.MonkeyPatch) -> Export:
    """Exports from a home with these rows; `url` becomes the variable BOOKS_URL."""
    stores = open_home(publish_odd)

    def run(target: str, *tables: str, folder: Path | None = None, url: str = "") -> Any:
        monkeypatch.setenv("BOOKS_URL", url)
        return export_tables(stores, target, tables, folder)

    return run


def file_of(exported: list[dict[str, Any]]) -> Path:
    (row,) = exported
    assert (row["table"], row["rows"]) == ("current.usage", len(RECORDS))
    return Path(row["exported_to"])


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row as a program reads them, of a record or of any target."""
    at, tags, prices = row["at"], row["tags"], row["prices"]
    time = datetime.fromisoformat(at) if isinstance(at, str) else at
    return {
        "text": row["text"],
        "amount": Decimal(str(row["amount"])),
        "at": (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC),
        "day": str(row["day"])[:10],
        "flag": str(row["flag"]).lower() in {"true", "1"},
        "size": int(row["size"]),
        "tags": json.loads(tags or "null") if isinstance(tags, str) else tags,
        "prices": json.loads(prices) if isinstance(prices, str) else [*map(str, prices)],
    }


def test_csv_has_every_value_and_tells_null_from_empty(export: Export) -> None:
    file = file_of(export("csv"))
    with file.open(encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source))
    assert [row["text"] for row in rows] == [record["text"] or "" for record in RECORDS]
    sniffed = f"read_csv('{file}', all_varchar = true, allow_quoted_nulls = false)"
    texts = duckdb.sql(f"SELECT exported.text FROM {sniffed} AS exported").fetchall()
    rows = [row | {"text": text} for row, (text,) in zip(rows, texts, strict=True)]
    assert [*map(plain, rows)] == [*map(plain, RECORDS)]


def test_parquet_has_every_value_and_type(export: Export) -> None:
    table = pq.read_table(file_of(export("parquet")))
    kinds = {name: table.schema.field(name).type for name in ("amount", "at", "day", "tags")}
    assert kinds == {
        "amount": pa.decimal128(38, 14),
        "at": pa.timestamp("us", "UTC"),
        "day": pa.date32(),
        "tags": pa.list_(pa.field("element", pa.string())),
    }
    assert [*map(plain, table.to_pylist())] == [*map(plain, RECORDS)]


def unescaped(value: Any) -> Any:
    """Return the value of a cell; text as it was before it was escaped."""
    if not isinstance(value, str):
        return value
    return re.sub("_x([0-9A-F]{4})_", lambda found: chr(int(found[1], 16)), value)


def test_a_workbook_has_exact_numbers_and_text_that_is_no_formula(export: Export) -> None:
    (exported,) = export("xlsx")
    assert exported["numbers_as_text"] == ["size", "amount"]
    headings, *cells = openpyxl.load_workbook(exported["exported_to"]).worksheets[0].iter_rows()
    assert not [each for row in cells for each in row if each.data_type == "f" or each.hyperlink]
    names = [cell.value for cell in headings]
    rows = [dict(zip(names, [unescaped(cell.value) for cell in row], strict=True)) for row in cells]
    for row, record in zip(rows, RECORDS, strict=True):
        is_short = len(record["amount"].strip("-").replace(".", "")) <= 15
        assert isinstance(row["amount"], str) is not is_short
        assert isinstance(row["day"], datetime) is (record["day"] >= "1900-03-01")
        assert (type(row["size"]), type(row["flag"])) == (str, bool)
    assert [*map(plain, rows)] == [*map(plain, RECORDS)]


def test_a_database_has_exact_values(export: Export, tmp_path: Path) -> None:
    for _ in range(2):  # the second one replaces the first
        (exported,) = export("BOOKS_URL", url=f"sqlite:///{tmp_path}/books.db")
    assert exported["exported_to"] == "usage in BOOKS_URL"
    with closing(sqlite3.connect(tmp_path / "books.db")) as db:
        db.row_factory = sqlite3.Row
        rows = db.execute("SELECT *, typeof(amount) AS kind FROM usage ORDER BY _key").fetchall()
    assert {row["kind"] for row in rows} == {"text"}
    assert [*map(plain, map(dict, rows))] == [*map(plain, RECORDS)]


def test_every_format_has_a_column_for_fields_whose_names_become_equal(
    open_home: OpenHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = open_home(publish_equal_names)
    monkeypatch.setenv("BOOKS_URL", f"sqlite:///{tmp_path}/books.db")
    fields = range(len(EQUAL_NAMES))
    for target in ("csv", "parquet", "xlsx", "BOOKS_URL"):
        rows = export_tables(stores, target, ["current.usage"])
        assert [row["rows"] for row in rows] == [1]
        if target == "BOOKS_URL":
            with closing(sqlite3.connect(tmp_path / "books.db")) as books:
                found = list(books.execute("SELECT * FROM usage").fetchone())
        elif target == "xlsx":
            sheet = openpyxl.load_workbook(rows[0]["exported_to"]).active
            found = [cell.value for cell in sheet[2]]
        else:
            exported = duckdb.sql(f"SELECT COLUMNS(*)::VARCHAR FROM '{rows[0]['exported_to']}'")
            found = list(exported.fetchall()[0])
        texts = [str(value) for value in found]
        assert [texts.count(f"value {each}") for each in fields] == [1] * len(fields), target


def test_a_failed_export_leaves_the_table_as_it_was(export: Export, tmp_path: Path) -> None:
    file = tmp_path / "books.db"
    url = f"sqlite:///{file}"
    export("BOOKS_URL", url=url)
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("DELETE FROM usage WHERE rowid > 4")
        db.execute("PRAGMA page_size = 512")
        db.execute("VACUUM")
    space = file.stat().st_size + 1024  # for a journal of what is dropped, not for all rows
    with full_disk(space), pytest.raises(StorageFailed, match="BOOKS_URL: ") as error:
        export("BOOKS_URL", url=url)
    assert str(tmp_path) not in str(error.value)
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT count(*) FROM usage").fetchone() == (4,)


def test_what_cannot_be_used_is_refused_and_no_url_is_shown(export: Export, tmp_path: Path) -> None:
    for url in (
        "nothing",
        "nobody://u:s3cret-word@host/db",  # no dialect
        "postgresql+nothing://u:s3cret-word@host/db",  # no driver
        "postgresql://u:s3cret-word@host:s3cret-word/db",  # no port
        "sqlite:////s3cret-word/nowhere/books.db",  # no folder
    ):
        with pytest.raises(PartnerSyncError, match="BOOKS_URL") as error:
            export("BOOKS_URL", url=url)
        assert "s3cret" not in f"{error.value} {error.value.remedy}"
    with pytest.raises(ConfigurationError, match=r"^Unknown format\. Use csv"):
        export("postgresql://u:s3cret-word@host/db")
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


def test_dbt_gets_every_table_of_a_schema_with_its_comments(export: Export, tmp_path: Path) -> None:
    rows = export("dbt", "meta", "current.usage", "meta.loads", folder=tmp_path / "dbt")
    document = json.loads((tmp_path / "dbt" / "sources.yml").read_text(encoding="utf-8"))
    tables = {
        f"{source['schema']}.{table['name']}": table
        for source in document["sources"]
        for table in source["tables"]
    }
    assert [*tables] == [row["table"] for row in rows]
    assert {"meta.loads", "meta.freshness", "current.usage"} <= tables.keys()
    amount = next(each for each in tables["current.usage"]["columns"] if each["name"] == "amount")
    assert amount["data_type"] == "DECIMAL(38,14)"
    for table in tables.values():
        assert table["description"]
        assert all(column["description"] for column in table["columns"])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_export_is_private_and_appears_whole(
    export: Export, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = file_of(export("csv")).parent
    assert folder == tmp_path / "publish_odd" / "exports" / "v00000001-csv"
    assert (folder.stat().st_mode & 0o777, folder.parent.stat().st_mode & 0o777) == (0o700, 0o700)
    killed = folder.with_name(f".{folder.name}.part")
    killed.mkdir()
    (killed / "usage.csv").touch()
    removed = list[str]()
    with monkeypatch.context() as patched:  # as if it was killed in the middle of that
        patched.setattr(shutil, "rmtree", lambda path, **_options: removed.append(path.name))
        export("csv")
    assert folder.name not in removed
    export("csv", "meta.loads")  # replaces it
    for target in ("csv", "parquet", "xlsx"):
        with full_disk(100), pytest.raises(StorageFailed, match=f"v00000001-{target} failed"):
            export(target)
    assert [file.name for file in folder.iterdir()] == ["meta__loads.csv"]
    assert list(folder.parent.iterdir()) == [folder]
    gc.collect()  # xlsxwriter does not close its temporary file after an error
