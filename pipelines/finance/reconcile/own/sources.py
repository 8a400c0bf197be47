"""Reads the rows of a source of own books as texts: files, or a table of a database.

Here: which files a source has, their digests, and that they did not change while they were read.
Not here: what the texts say (rows).
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from glob import escape
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import duckdb
import openpyxl
import pyarrow as pa

from pipelines.core.text import printable, quote_identifier, quote_text
from pipelines.finance.own_mapping import OwnSource
from pipelines.finance.reconcile.own.cells import text_of
from pipelines.finance.reconcile.own.database import TableRows
from pipelines.finance.reconcile.own.not_read import NotRead

ROLES: Final = ("id", "number", "partner", "period", "amount", "currency", "quantity")
SUFFIXES: Final = (".csv", ".parquet", ".xlsx")
# Nothing is skipped: a line that does not fit is an error, so that no row is lost.
CSV: Final = "read_csv({file}, all_varchar = true, header = true, skip = 0)"
PARQUET: Final = "read_parquet({file}, file_row_number = true)"
FLOATS: Final = ("FLOAT", "DOUBLE")
BATCH: Final = 20_000
TEXTS: Final = "FROM added"  # rows in memory
MOST_NAMED: Final = 12  # columns, in an error
NumberedTexts = tuple[int, tuple[str | None, ...]]
"""The number of a row, and its texts in the order of the columns."""


class Insert(Protocol):
    """Returns the statement that adds texts, which are a query, of a file by its number."""

    def __call__(self, texts: str, file: int) -> str:
        """Return the statement."""
        ...


class OwnFile(NamedTuple):
    """A file, or a table of a database, that was read whole."""

    name: str
    sha256: str


def load_texts(
    db: duckdb.DuckDBPyConnection, source: OwnSource, root: Path, insert: Insert
) -> list[OwnFile]:
    """Add the rows of a source; `root` is the home. Raises NotRead, duckdb.Error."""
    columns = source.roles.columns()
    if source.file is None:
        rows = TableRows(str(source.url_variable), str(source.table), columns)
        for batch in _batches(enumerate(rows, 1)):
            _add_batch(db, insert(TEXTS, 0), columns, batch)
        return [OwnFile(source.place, rows.sha256())]
    files = find_files(root, source.file)
    loaded = []
    for number, file in enumerate(files):
        digest = _digest_of(file)
        _load_file(db, file, columns, partial(insert, file=number))
        if _digest_of(file) != digest:
            raise NotRead(f"{_name_of(root, file)} changed while it was read")
        loaded.append(OwnFile(_name_of(root, file), digest))
    if find_files(root, source.file) != files:
        raise NotRead(f"files of {source.file} came or went while they were read")
    return loaded


def digest_of_all(files: Sequence[OwnFile]) -> str:
    """Return the SHA-256 of a source: of its file, or of the lines `sha256sum` prints of all."""
    if len(files) == 1:
        return files[0].sha256
    lines = "".join(f"{file.sha256}  {file.name}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def digest_now(source: OwnSource, root: Path) -> str | None:
    """Return the SHA-256 that a source of files has now; None of a database, or if unreadable."""
    if source.file is None:
        return None
    try:
        files = find_files(root, source.file)
        return digest_of_all([OwnFile(_name_of(root, file), _digest_of(file)) for file in files])
    except NotRead:
        return None


def find_files(root: Path, pattern: str) -> list[Path]:
    """Return the files that a file, folder or pattern names, in their order. Raises NotRead."""
    path = root / pattern
    found: Iterable[Path]
    if path.is_dir():
        found = path.iterdir()
    elif path.exists():
        found = [path]
    elif Path(pattern).is_absolute():
        found = Path(path.anchor).glob(str(path.relative_to(path.anchor)))
    else:
        found = root.glob(pattern)
    files = sorted(file for file in found if file.is_file() and not file.name.startswith("."))
    if not files:
        raise NotRead(f"no file is there as {pattern} says, relative to the home")
    for file in files:
        if file.suffix.lower() not in SUFFIXES:
            raise NotRead(f"{file.name} is none of {', '.join(SUFFIXES)}")
    return files


def _name_of(root: Path, file: Path) -> str:
    """Return a file as people name it: relative to the home, if it is in it."""
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)


def _digest_of(file: Path) -> str:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise NotRead(f"{file.name} cannot be read: {error.strerror}") from error


def _load_file(
    db: duckdb.DuckDBPyConnection,
    file: Path,
    columns: dict[str, str],
    insert: Callable[[str], str],
) -> None:
    if file.suffix.lower() == ".xlsx":
        for batch in _batches(_sheet_rows(file, columns)):
            _add_batch(db, insert(TEXTS), columns, batch)
        return
    # DuckDB takes the name of a file as a pattern.
    name = quote_text(escape(str(file)))
    try:
        if file.suffix.lower() == ".csv":
            db.execute(insert(_csv_texts(db, file, name, columns)))
        else:
            db.execute(insert(_parquet_texts(db, file, name, columns)))
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        first_line = str(error).partition("\n")[0]
        raise NotRead(f"{file.name} cannot be read: {printable(first_line)}") from error


def _csv_texts(
    db: duckdb.DuckDBPyConnection, file: Path, name: str, columns: dict[str, str]
) -> str:
    table = CSV.format(file=name)
    _require_columns(file, db.sql(f"FROM {table}").columns, columns)
    # Line 1 has the headings.
    return _texts(f"row_number() OVER () + 1 AS row, * FROM {table}", columns, quote_identifier)


def _parquet_texts(
    db: duckdb.DuckDBPyConnection, file: Path, name: str, columns: dict[str, str]
) -> str:
    table = PARQUET.format(file=name)
    relation = db.sql(f"FROM {table}")
    types = {
        column: str(kind) for column, kind in zip(relation.columns, relation.types, strict=True)
    }
    _require_columns(file, [*types], columns)

    def text(column: str) -> str:
        value = quote_identifier(column)
        # A number of 15 digits is the same in a float and in decimal.
        return f"printf('%.15g', {value})" if types[column] in FLOATS else f"{value}::VARCHAR"

    return _texts(f"file_row_number + 1 AS row, * FROM {table}", columns, text)


def _texts(rows: str, columns: dict[str, str], text: Callable[[str], str]) -> str:
    """Return the query of the texts of all roles; a role without a column has none."""
    names = [
        f"{text(columns[role]) if role in columns else 'NULL::VARCHAR'} AS {role}_text"
        for role in ROLES
    ]
    return f"SELECT row, {', '.join(names)} FROM (SELECT {rows})"


def _batches(rows: Iterable[NumberedTexts]) -> Iterator[list[NumberedTexts]]:
    """Yield rows in lists of at most BATCH."""
    left = iter(rows)
    batch = list(islice(left, BATCH))
    while batch:
        yield batch
        batch = list(islice(left, BATCH))


def _add_batch(
    db: duckdb.DuckDBPyConnection,
    statement: str,
    columns: dict[str, str],
    batch: Sequence[NumberedTexts],
) -> None:
    """Add rows with their numbers; the values are in the order of `columns`."""
    table = {"row": pa.array([number for number, _values in batch], pa.int64())}
    by_role = dict(zip(columns, zip(*(values for _row, values in batch), strict=True), strict=True))
    nothing = [None] * len(batch)
    for role in ROLES:
        table[f"{role}_text"] = pa.array(by_role.get(role, nothing), pa.string())
    db.from_arrow(pa.table(table)).query("added", statement)


def _sheet_rows(file: Path, columns: dict[str, str]) -> Iterator[NumberedTexts]:
    """Yield the rows of the first sheet of a workbook, whose first row has the headings."""
    try:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    except Exception as error:  # a damaged workbook fails in many ways
        raise NotRead(f"{file.name} is no workbook that can be read") from error
    try:
        rows = book.worksheets[0].iter_rows(values_only=True)
        headings = [str(cell or "") for cell in next(rows, ())]
        _require_columns(file, headings, columns)
        places = [headings.index(column) for column in columns.values()]
        for number, cells in enumerate(rows, 2):
            yield number, tuple(map(text_of, _at(cells, places)))
    finally:
        book.close()


def _at(cells: Sequence[Any], places: Sequence[int]) -> Iterator[Any]:
    """Yield cells by their place; a short row has none at its end."""
    for place in places:
        yield cells[place] if place < len(cells) else None


def _require_columns(file: Path, there: Sequence[str], columns: dict[str, str]) -> None:
    for role, column in columns.items():
        if column not in there:
            known = ", ".join(printable(name, 40) for name in there[:MOST_NAMED])
            raise NotRead(
                f"{file.name} has no column {printable(column, 40)} (role {role}). Its columns: "
                f"{known}"
            )
