"""Reads values of roles as they were sent: texts in columns, and what is only in `_extra`.

Here: what such texts and rows say, and the tables that hold it. Not here: how views join them
(`readings.py`).
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa

from pipelines.core.text import quote_identifier
from pipelines.finance.reconcile.roles import FieldColumn, name_of
from pipelines.finance.reconcile.spelled import (
    find_sent,
    kind_of,
    read_sent,
    read_value,
    text_of,
)

KEYS: Final = {
    "record": ("_connection", "_key", "_valid_from"),
    "line": ("_connection", "_parent_key", "_index", "_valid_from"),
}
# Arrow types of the columns of a key that are no text.
KEY_TYPES: Final = {"_index": pa.int64(), "_valid_from": pa.timestamp("us", tz="UTC")}
TEXTS: Final = """
SELECT DISTINCT {column.value} FROM history.{table} AS {column.row} WHERE {column.value} IS NOT NULL
"""
EXTRAS: Final = """
SELECT {keys}, {row}._extra, [{empty}]
FROM history.{table} AS {row}
WHERE {row}._extra IS NOT NULL AND ({wanted})
"""
# Rows that are fetched at once: `_extra` of all rows of a list may be large.
BATCH: Final = 10_000
# Stands among the roles that cannot be read of a bill whose lines are no list.
LINES: Final = "lines"


class SentRow(NamedTuple):
    """A row with values that only `_extra` has: its key, and what they say by role.

    `unread` are names of roles that cannot be read, `text` is what was sent for the first of them.
    """

    key: tuple[Any, ...]
    values: dict[str, Any]
    unread: list[str]
    text: str | None


def read_texts(
    db: duckdb.DuckDBPyConnection, role: str, column: FieldColumn, zone: ZoneInfo
) -> Any:
    """Return what each text in a column says, None for nothing."""
    query = TEXTS.format(column=column, table=quote_identifier(column.table))
    kind = kind_of(role)
    return {text: read_value(kind, text, zone) for (text,) in _fetch(db, query)}


def read_rows(
    db: duckdb.DuckDBPyConnection,
    roles: Mapping[str, FieldColumn],
    zone: ZoneInfo,
    needed: Collection[str],
    lines: Sequence[str],
) -> Iterator[SentRow]:
    """Yield the rows of a table whose `_extra` has a value of one of its roles.

    Of bills, `lines` are the names from the record to the list of lines: also a bill is yielded
    where that is no list. `needed` are the roles without which a figure is wrong.
    """
    first = next(iter(roles.values()))
    for *key, extra_text, are_empty in _fetch(db, _query_of_extras(first, roles, lines)):
        extra = json.loads(extra_text)
        sent = {}
        for (role, column), is_empty in zip(roles.items(), are_empty, strict=True):
            value = _sent(extra, role, column) if is_empty else None
            if value is not None:
                sent[role] = value
        in_place_of_lines = find_sent(extra, lines) if lines else None
        if sent or in_place_of_lines is not None:
            row = _row(tuple(key), sent, zone, needed)
            yield row if in_place_of_lines is None else _without_lines(row, in_place_of_lines)


def _query_of_extras(
    first: FieldColumn, roles: Mapping[str, FieldColumn], lines: Sequence[str]
) -> str:
    """Return the query of rows that may have a value in `_extra`; `first` is of their table."""
    wanted = [
        f"({column.value} IS NULL AND {_has(first.row, column.names)})" for column in roles.values()
    ]
    if lines:
        wanted.append(_has(first.row, lines))
    return EXTRAS.format(
        keys=", ".join(f"{first.row}.{key}" for key in KEYS[first.row]),
        empty=", ".join(f"{column.value} IS NULL" for column in roles.values()),
        row=first.row,
        table=quote_identifier(first.table),
        wanted=" OR ".join(wanted),
    )


def _sent(extra: dict[str, Any], role: str, column: FieldColumn) -> Any:
    """Return what `_extra` of a row has of a role; None for nothing."""
    value = find_sent(extra, column.names)
    # A bill with a blank period is one without any.
    is_blank_period = role == "billing.period" and value == ""
    return None if is_blank_period else value


def _row(
    key: tuple[Any, ...], sent: Mapping[str, Any], zone: ZoneInfo, needed: Collection[str]
) -> SentRow:
    """Return a row with what was sent, by role."""
    values = {}
    unread = []
    text = None
    for role, value in sent.items():
        values[role] = read_sent(kind_of(role), value, zone)
        if role in needed and values[role] is None:
            unread.append(name_of(role))
            if text is None:
                text = text_of(value)
    return SentRow(key, values, unread, text)


def _without_lines(row: SentRow, sent: Any) -> SentRow:
    """Return the row of a bill whose lines cannot be read: something else was sent."""
    text = text_of(sent) if row.text is None else row.text
    return row._replace(unread=[*row.unread, LINES], text=text)


def _has(row: str, names: Sequence[str]) -> str:
    """Return a condition that holds wherever `_extra` of a row has something at a place.

    It is a fast one, which spares most rows to be parsed, and may hold elsewhere.
    """
    name = names[0] if names else ""
    is_spelled_one_way = name.isascii() and name.replace("_", "").isalnum()
    return f"""contains({row}._extra, '"{name}"')""" if is_spelled_one_way else "true"


def _fetch(db: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple[Any, ...]]:
    result = db.execute(query)
    rows = result.fetchmany(BATCH)
    while rows:
        yield from rows
        rows = result.fetchmany(BATCH)


def write_texts(
    db: duckdb.DuckDBPyConnection, table: str, texts: Mapping[str, Any], of_type: pa.DataType
) -> None:
    """Create the table of what texts say; those that say nothing are not in it."""
    known = {text: value for text, value in texts.items() if value is not None}
    columns = {
        "text": pa.array(known.keys(), pa.string()),
        "value": pa.array(known.values(), of_type),
    }
    _create(db, table, columns)


def write_rows(
    db: duckdb.DuckDBPyConnection,
    table: str,
    row_kind: str,
    rows: Sequence[SentRow],
    types: Mapping[str, pa.DataType],
) -> None:
    """Create the table of what rows say: key, a column for each role, failures, a text.

    `row_kind` is record or line, `types` has the type of each role.
    """
    columns = {}
    for position, name in enumerate(KEYS[row_kind]):
        parts = [row.key[position] for row in rows]
        columns[name] = pa.array(parts, KEY_TYPES.get(name, pa.string()))
    for role, of_type in types.items():
        columns[name_of(role)] = pa.array([row.values.get(role) for row in rows], of_type)
    unread = [",".join(row.unread) or None for row in rows]
    columns["unread"] = pa.array(unread, pa.string())
    columns["unread_text"] = pa.array([row.text for row in rows], pa.string())
    _create(db, table, columns)


def table_kind(name: str) -> str:
    """Return what a statement that creates a table of a name calls it."""
    return "TEMP TABLE" if name.startswith("temp.") else "TABLE"


def _create(db: duckdb.DuckDBPyConnection, table: str, columns: dict[str, pa.Array]) -> None:
    rows = db.from_arrow(pa.table(columns))
    rows.query("added", f"CREATE {table_kind(table)} {table} AS FROM added")
