"""Traces of a text are found in whatever form a file stores it, and not where there are none."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from pipelines.warehouse import traces


def duckdb_file(file: Path, text: str) -> None:
    with duckdb.connect(file) as writer:
        rows = "SELECT range AS id, concat('same', range % 3) AS kind FROM range(5000)"
        writer.execute(f"CREATE TABLE things AS {rows}")
        writer.execute("INSERT INTO things VALUES (5000, ?)", [text])


def parquet(file: Path, text: str) -> None:
    pq.write_table(pa.table({"kind": ["same"] * 5000 + [text]}), file, compression="zstd")


def workbook(file: Path, text: str) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("sheet1.xml", f"<c>{text}</c>" * 100)


FORMS: dict[str, Callable[[Path, str], object]] = {
    "plain.csv": lambda file, text: file.write_text(f"id\n{text}\n"),
    "page.json.zst": lambda file, text: file.write_bytes(
        zstandard.ZstdCompressor().compress(f'{{"id": "{text}"}}'.encode() * 50)
    ),
    "some.duckdb": duckdb_file,
    "some.parquet": parquet,
    "some.xlsx": workbook,
    "long.log": lambda file, text: file.write_bytes(
        b"." * (traces.CHUNK - 3) + text.encode() + b"." * 9
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_text_is_found_in_every_form(tmp_path: Path, name: str) -> None:
    file = tmp_path / "folder" / name
    file.parent.mkdir()
    FORMS[name](file, "partner-000017")
    assert list(traces.files(tmp_path, "partner-000017")) == [file]
    assert list(traces.files(tmp_path, "partner-000018")) == []


@pytest.mark.parametrize("name", ["a.duckdb", "a.zst", "a.parquet", "a.xlsx"])
def test_what_only_looks_like_a_form_is_read_as_bytes(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"no such format, and partner-000017")
    assert list(traces.files(tmp_path, "partner-000017")) == [tmp_path / name]
    assert list(traces.files(tmp_path, "partner-000018")) == []


def test_a_name_of_a_file_counts(tmp_path: Path) -> None:
    (tmp_path / "of partner-000017.txt").touch()
    assert len(list(traces.files(tmp_path, "partner-000017"))) == 1
