"""Reads the rows of a file of own books as texts. Which files: sources; what they say: rows."""

import csv
from collections.abc import Callable
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from pipelines.core.text import printable, quote_identifier, quote_text
from pipelines.finance.reconcile.own.cells import NAMES, inexact
from pipelines.finance.reconcile.own.columns import places_of
from pipelines.finance.reconcile.own.memory import ROLES, add_rows
from pipelines.finance.reconcile.own.not_read import NotRead
from pipelines.finance.reconcile.own.sheets import sheet_rows
from pipelines.warehouse.memory_limit import is_memory_refused

# Nothing is skipped: a line that does not fit is an error, so that no row is lost. Nothing is
# guessed: a sign that was taken for a quote would join rows. No column comes from the file's path.
CSV: Final = (
    "read_csv({file}, auto_detect = false, columns = {columns}, header = false, skip = 0, "
    "delim = {delimiter}, quote = '\"', escape = '\"', comment = '', hive_partitioning = false)"
)
# DuckDB passes over blank lines. Other programs count them, so numbers of rows do, too.
CREATE_BLANK_LINES: Final = "CREATE OR REPLACE TEMP TABLE blank_lines AS FROM added"
BEHIND_BLANK_LINES: Final = """
SELECT texts.* REPLACE (texts.row + coalesce(blank_lines.lines, 0) AS row)
FROM ({query}) AS texts
ASOF LEFT JOIN temp.blank_lines ON texts.row > blank_lines.rows_before
"""
DELIMITERS: Final = (",", ";", "\t", "|")
PARQUET: Final = "read_parquet({file}, hive_partitioning = false)"
# What says nothing about a file.
PASSING: Final = (duckdb.InterruptException, duckdb.FatalException)
# A float, as text with as many digits as it tells apart, and from which number on a whole one has
# more digits than that.
FLOATS: Final = {
    "FLOAT": ("{value}::VARCHAR", "1e7"),
    "DOUBLE": ("printf('%.15g', {value})", "1e15"),
}
REFUSED: Final = "if(abs({value}) >= {most} AND NOT isnan({value}), error({why}), {text})"
"""error() has no type of its own: `if` takes that of the text."""


def load_file(
    db: duckdb.DuckDBPyConnection,
    file: Path,
    columns: dict[str, str],
    insert: Callable[[str], str],
) -> None:
    """Add the rows of a file, all or none that count.

    Raises NotRead for whatever is wrong with it, and duckdb.Error where memory was refused.
    """
    # DuckDB takes the name of a file as a pattern.
    name = quote_text(escape(str(file)))
    try:
        match file.suffix.lower():
            case ".csv":
                db.execute(insert(_csv_texts(db, file, name, columns)))
            case ".parquet":
                db.execute(insert(_parquet_texts(db, file, PARQUET.format(file=name), columns)))
            case _:
                add_rows(db, insert, columns, sheet_rows(file, columns))
    except NotRead:
        raise
    except Exception as error:  # a damaged file fails in many ways
        if is_memory_refused(error) or isinstance(error, PASSING):
            raise
        first_line = printable(str(error).partition("\n")[0]).rstrip(".")
        raise NotRead(f"{file.name} cannot be read: {first_line}") from error


def _csv_texts(
    db: duckdb.DuckDBPyConnection, file: Path, name: str, columns: dict[str, str]
) -> str:
    delimiter, headings = _first_line(file, columns)
    texts = {role: f"c{place}" for role, place in places_of(file, headings, columns).items()}
    of_type = ", ".join(f"c{place}: 'VARCHAR'" for place in range(len(headings)))
    table = CSV.format(file=name, columns=f"{{{of_type}}}", delimiter=quote_text(delimiter))
    query = f"SELECT * FROM ({_texts(table, texts)}) AS texts WHERE texts.row > 1"
    blank_lines = _blank_lines(file, delimiter) if len(headings) > 1 else {}
    if not blank_lines:
        return query
    lines = {
        "rows_before": pa.array(blank_lines.keys(), pa.int64()),
        "lines": pa.array(blank_lines.values(), pa.int64()),
    }
    db.from_arrow(pa.table(lines)).query("added", CREATE_BLANK_LINES)
    return BEHIND_BLANK_LINES.format(query=query)


def _blank_lines(file: Path, delimiter: str) -> dict[int, int]:
    """Return how many blank lines there are up to each place with some, by the rows before it."""
    # Few files have any; only those are read line by line.
    if not _has_blank_line(file):
        return {}
    found = {}
    rows = 0
    lines = 0
    # A cell of more than 128 KiB ends the count, not the reading.
    with file.open(encoding="utf-8-sig", newline="") as text, suppress(csv.Error):
        for cells in csv.reader(text, delimiter=delimiter):
            if cells:
                rows += 1
            else:
                lines += 1
                found[rows] = lines
    return found


def _has_blank_line(file: Path) -> bool:
    """Return whether a line of a file has nothing, also in a cell."""
    with file.open("rb") as content:
        return any(not line.rstrip(b"\r\n") for line in content)


def _first_line(file: Path, columns: dict[str, str]) -> tuple[str, list[str]]:
    """Return what divides the headings, and the headings: those that have the columns of roles."""
    read = {}
    for delimiter in DELIMITERS:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            headings = next(csv.reader(lines, delimiter=delimiter), [])
        if set(columns.values()) <= set(headings):
            return delimiter, headings
        read[delimiter] = headings
    # None has them: the longest line says best what is there.
    longest = max(read, key=lambda delimiter: len(read[delimiter]))
    return longest, read[longest]


def _parquet_texts(
    db: duckdb.DuckDBPyConnection, file: Path, table: str, columns: dict[str, str]
) -> str:
    relation = db.sql(f"FROM {table}")
    places = places_of(file, relation.columns, columns)
    texts = {}
    for role, place in places.items():
        value = quote_identifier(relation.columns[place])
        texts[role] = _parquet_text(role, value, str(relation.types[place]))
    return _texts(table, texts)


def _parquet_text(role: str, value: str, of_type: str) -> str:
    """Return the expression of a value as text, which fails where a float is no identifier."""
    if of_type not in FLOATS:
        return f"{value}::VARCHAR"
    as_text, most = FLOATS[of_type]
    text = as_text.format(value=value)
    if role not in NAMES:
        return text
    return REFUSED.format(value=value, most=most, why=quote_text(inexact(role)), text=text)


def _texts(table: str, texts: dict[str, str]) -> str:
    """Return the query of the numbers of rows and the texts of all roles; most files lack some.

    Names of the file's columns come first: its columns may be called as ours.
    """
    names = [f"{texts.get(role, 'NULL::VARCHAR')} AS {role}_text" for role in ROLES]
    # The number is added to texts, so that who filters rows does not make the texts twice.
    return f"SELECT row_number() OVER () AS row, * FROM (SELECT {', '.join(names)} FROM {table})"
