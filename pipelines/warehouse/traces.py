"""Traces: in which files of a home a text still stands, whatever form it is stored in.

Raw bytes, pages decompressed, every value of DuckDB files, Parquet columns, members of workbooks.
Here: looking. Not here: what is done about it (run.erasure).
"""

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard

from pipelines.errors import PartnerSyncError
from pipelines.warehouse import database
from pipelines.warehouse.database import quoted
from pipelines.warehouse.store import Store

CHUNK = 1 << 24


def files(root: Path, text: str) -> Iterator[Path]:
    """Yield every file below a folder that says the text, links apart; also by its own name."""
    for file in sorted(root.rglob("*")):
        if file.is_file() and not file.is_symlink() and (text in file.name or says(file, text)):
            yield file


def stored(store: Store, text: str) -> Iterator[str]:
    """Yield the names of files of a store out of the home that say the text.

    Each is copied here to be looked at.
    """
    for name in store.sizes("") if store.apart else ():
        with store.file(name) as file:
            if text in name or says(file, text):
                yield name


def says(file: Path, text: str) -> bool:
    """Tell whether a file says a text, in its bytes or in what its format makes of them."""
    looks = LOOKS.get(file.suffix)
    return _raw(file, text) or (looks is not None and looks(file, text))


def _raw(file: Path, text: str) -> bool:
    """Look through the bytes; where two pieces meet, too."""
    needle, rest = text.encode(), b""
    with file.open("rb") as stream:
        while piece := stream.read(CHUNK):
            if needle in rest + piece:
                return True
            rest = piece[-len(needle) :]
    return False


def _compressed(file: Path, text: str) -> bool:
    try:
        return text.encode() in zstandard.ZstdDecompressor().decompress(file.read_bytes())
    except zstandard.ZstdError:
        return False


def _tables(file: Path, text: str) -> bool:
    """Look at every value of every table; a file that is none has been looked through as bytes."""
    try:
        with database.reading(file) as reader:
            tables = reader.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal"
            ).fetchall()
            return any(in_table(reader, quoted(*table), text) for table in tables)
    except (duckdb.Error, PartnerSyncError):
        return False


def in_table(reader: duckdb.DuckDBPyConnection, table: str, text: str) -> bool:
    """Tell whether any value of a table says a text."""
    row = reader.execute(f"SELECT 1 FROM {table} WHERE {saying(reader, table)} LIMIT 1", [text])
    return bool(row.fetchall())


def saying(reader: duckdb.DuckDBPyConnection, table: str) -> str:
    """Return the condition that any value of a row says the text that is bound to it."""
    names = [name for name, *_rest in reader.execute(f"DESCRIBE {table}").fetchall()]
    values = ", ".join(f"{quoted(name)}::VARCHAR" for name in names)
    return f"contains(concat_ws(chr(31), {values}), $1)"


def _columns(file: Path, text: str) -> bool:
    try:
        groups = pq.ParquetFile(file).iter_batches()
        return any(_in_batch(batch, text) for batch in groups)
    except pa.ArrowException:
        return False


def _in_batch(batch: pa.RecordBatch, text: str) -> bool:
    texts = [column.cast(pa.string()) for column in batch.columns if _is_plain(column.type)]
    return any(pc.any(pc.match_substring(column, text)).as_py() for column in texts)


def _is_plain(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
    )


def _members(file: Path, text: str) -> bool:
    try:
        with zipfile.ZipFile(file) as parts:
            return any(text.encode() in parts.read(name) for name in parts.namelist())
    except zipfile.BadZipFile:
        return False


LOOKS: dict[str, Callable[[Path, str], bool]] = {
    ".zst": _compressed,
    ".duckdb": _tables,
    ".parquet": _columns,
    ".xlsx": _members,
}
