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
from pipelines.finance.reconcile.roles import FieldColumn
from pipelines.finance.reconcile.spelled import (
    Kind,
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
ARROW: Final = {
    "_index": pa.int64(),
    "_valid_from": pa.timestamp("us", tz="UTC"),
    Kind.DAY: pa.date32(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
}
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
# A role that no mapping names: of a bill, what was sent in place of its lines is no list.
LINES: Final = "lines"


class SentRow(NamedTuple):
    """A row with values that only `_extra` has: its key, what they say by role, what fails.

    `unread` are names of roles that cannot be read, `text` is what was sent for one of them.
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
    terms: tuple[ZoneInfo, Collection[str]],
    lines: Sequence[str] = (),
) -> Iterator[SentRow]:
    """Yield the rows of a table whose `_extra` has a value of a role; `lines`: or their list.

    `terms` are the time zone, and the roles without which a figure is wrong.
    """
    first = next(iter(roles.values()))
    wanted = [
        f"({column.value} IS NULL AND {_has(first.row, column.names)})" for column in roles.values()
    ]
    if lines:
        wanted.append(_has(first.row, lines))
    query = EXTRAS.format(
        keys=", ".join(f"{first.row}.{key}" for key in KEYS[first.row]),
        empty=", ".join(f"{column.value} IS NULL" for column in roles.values()),
        row=first.row,
        table=quote_identifier(first.table),
        wanted=" OR ".join(wanted),
    )
    for *key, extra, empty in _fetch(db, query):
        extra_values = json.loads(extra)
        without_column = [role for role, is_empty in zip(roles, empty, strict=True) if is_empty]
        sent = _sent(extra_values, {role: roles[role] for role in without_column}, lines)
        if sent:
            yield _row(tuple(key), sent, *terms)


def _sent(
    extra: dict[str, Any], roles: Mapping[str, FieldColumn], lines: Sequence[str]
) -> dict[str, Any]:
    """Return what `_extra` of a row has of roles, and in place of a list of lines."""
    sent = {}
    for role, column in roles.items():
        value = find_sent(extra, column.names)
        # A bill with a blank period is one without any.
        is_blank_period = role == "billing.period" and value == ""
        if value is not None and not is_blank_period:
            sent[role] = value
    if lines:
        not_a_list = find_sent(extra, lines)
        if not_a_list is not None:
            sent[LINES] = not_a_list
    return sent


def _row(
    key: tuple[Any, ...], sent: dict[str, Any], zone: ZoneInfo, needed: Collection[str]
) -> SentRow:
    """Return what a row says by role, and what of it cannot be read."""
    values = {}
    unread = []
    text = None
    for role, value in sent.items():
        if role != LINES:
            values[role] = read_sent(kind_of(role), value, zone)
        is_needed = role == LINES or role in needed
        if is_needed and values.get(role) is None:
            unread.append(role.rpartition(".")[2])
            if text is None:
                text = text_of(value)
    return SentRow(key, values, unread, text)


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
    rows: Sequence[SentRow],
    roles: Mapping[str, tuple[str, pa.DataType]],
) -> None:
    """Create the table of what rows say: key, a column for each role, failures, a text.

    `roles` have a name and a type by role.
    """
    is_of_lines = len(rows[0].key) == len(KEYS["line"])
    keys = KEYS["line"] if is_of_lines else KEYS["record"]
    columns = {}
    for at, name in enumerate(keys):
        of_type = ARROW.get(name, pa.string())
        columns[name] = pa.array([row.key[at] for row in rows], of_type)
    for role, (name, of_type) in roles.items():
        columns[name] = pa.array([row.values.get(role) for row in rows], of_type)
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
