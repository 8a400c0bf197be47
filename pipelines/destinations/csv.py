"""CSV after RFC 4180, in UTF-8: plain digits, exactly what the tables hold; for programs.

It is not defused: a quote put before `=1+1` would change the data for every program that reads it.
How many texts a spreadsheet would take for formulas is counted and said; xlsx is for people.
"""

from pathlib import Path

import pyarrow as pa

from pipelines.destinations.base import Destination, one_file_each
from pipelines.warehouse.database import quoted
from pipelines.warehouse.published import Published, Table

END = "\r\n"
TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
FORMULA = r"^[=+\-@\t\r]"


def _write(source: Published, table: Table, file: Path) -> tuple[int, list[str]]:
    """Write a table; NULL is nothing between two commas, an empty text is two quotes."""
    rows, formulas = 0, 0
    line = " || ',' || ".join(_field(quoted(each.name), each.type) for each in table.columns)
    risky = " + ".join(_risky(quoted(each.name), each.type) for each in table.columns)
    query = f"SELECT {line} AS line, {risky} AS risky FROM ({table.query})"
    with file.open("w", encoding="utf-8", newline="") as stream:
        stream.write(",".join(_heading(name) for name in table.columns.names) + END)
        for batch in source.batches(query):
            stream.writelines(each + END for each in batch.column(0).to_pylist())
            rows += batch.num_rows
            formulas += sum(batch.column(1).to_pylist())
    return rows, _notes(table, formulas)


def _field(column: str, kind: pa.DataType) -> str:
    """Return the SQL of a field of a line."""
    if pa.types.is_string(kind):
        inside = f"""'"' || replace({column}, '"', '""') || '"'"""
        bare = f"""{column} != '' AND NOT regexp_matches({column}, '[",\\r\\n]')"""
        text = f"CASE WHEN {bare} THEN {column} ELSE {inside} END"
    elif pa.types.is_timestamp(kind):
        text = f"strftime({column}, '{TIME}')"
    elif pa.types.is_binary(kind):
        text = f"lower(hex({column}))"
    else:
        text = f"CAST({column} AS VARCHAR)"
    return f"CASE WHEN {column} IS NULL THEN '' ELSE {text} END"


def _risky(column: str, kind: pa.DataType) -> str:
    """Return the SQL that tells a text which a spreadsheet would take for a formula."""
    if not pa.types.is_string(kind):
        return "0"
    return f"CASE WHEN regexp_matches({column}, '{FORMULA}') THEN 1 ELSE 0 END"


def _heading(name: str) -> str:
    plain = not set(name) & set('",\r\n')
    return name if plain else '"' + name.replace('"', '""') + '"'


def _notes(table: Table, formulas: int) -> list[str]:
    words = (
        f"{table.title}: {formulas:,} texts begin with = + - @, a tab or a line end and are as "
        "sent; a spreadsheet would run them as formulas: for one, export --to xlsx"
    )
    return [words] if formulas else []


CSV = Destination(
    name="csv",
    description="RFC 4180 in UTF-8, a file a table; plain digits, times in UTC, nothing defused.",
    deliver=one_file_each("csv", _write),
)
