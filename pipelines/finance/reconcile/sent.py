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
from pipelines.finance.reconcile.roles import Column
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
TEXTS: Final = "SELECT DISTINCT {0.value} FROM history.{1} AS {0.row} WHERE {0.value} IS NOT NULL"
EXTRAS: Final = """
SELECT {keys}, {row}._extra, [{empty}]
FROM history.{table} AS {row}
WHERE {row}._extra IS NOT NULL AND ({wanted})
"""
BATCH: Final = 10_000
LINES: Final = "lines"  # of a bill: what was sent in their place is no list


class SentRow(NamedTuple):
    """A row with values that only `_extra` has: its key, what they say by role, what fails.

    `unread` are names of roles that cannot be read, `text` is what was sent for one of them.
    """

    key: tuple[Any, ...]
    values: dict[str, Any]
    unread: list[str]
    text: str | None


def read_texts(db: duckdb.DuckDBPyConnection, role: str, column: Column, zone: ZoneInfo) -> Any:
    """Return what each text in a column says, None for nothing."""
    query = TEXTS.format(column, quote_identifier(column.table))
    kind, found = kind_of(role), dict[str, Any]()
    for (text,) in _fetch(db, query):
        found[text] = read_value(kind, text, zone)
    return found


def read_rows(
    db: duckdb.DuckDBPyConnection,
    roles: Mapping[str, Column],
    terms: tuple[ZoneInfo, Collection[str]],
    lines: Sequence[str] = (),
) -> Iterator[SentRow]:
    """Yield the rows of a table whose `_extra` has a value of a role; `lines`: or their list.

    `terms` are the time zone, and the roles without which a figure is wrong.
    """
    first = next(iter(roles.values()))
    values = [column.value for column in roles.values()]
    wanted = [
        f"({column.value} IS NULL AND {_has(first.row, column.names)})" for column in roles.values()
    ]
    wanted += [_has(first.row, lines)] if lines else []
    query = EXTRAS.format(
        keys=", ".join(f"{first.row}.{key}" for key in KEYS[first.row]),
        empty=", ".join(f"{value} IS NULL" for value in values),
        row=first.row,
        table=quote_identifier(first.table),
        wanted=" OR ".join(wanted),
    )
    for *key, extra, empty in _fetch(db, query):
        sent = json.loads(extra)
        of_roles = {
            role: find_sent(sent, column.names)
            for (role, column), is_empty in zip(roles.items(), empty, strict=True)
            if is_empty
        }
        found = {
            role: value
            for role, value in of_roles.items()
            if value is not None and not (role == "billing.period" and value == "")
        }
        if lines and find_sent(sent, lines) is not None:
            found[LINES] = find_sent(sent, lines)
        if found:
            yield _row(tuple(key), found, *terms)


def _row(
    key: tuple[Any, ...], sent: dict[str, Any], zone: ZoneInfo, needed: Collection[str]
) -> Any:
    values = {
        role: read_sent(kind_of(role), value, zone) for role, value in sent.items() if role != LINES
    }
    failed = [role for role in sent if role in {*needed, LINES} and values.get(role) is None]
    text = text_of(sent[failed[0]]) if failed else None
    return SentRow(key, values, [role.rpartition(".")[2] for role in failed], text)


def _has(row: str, names: Sequence[str]) -> str:
    """Return a condition that holds wherever `_extra` of a row has something at a place."""
    name = names[0] if names else ""
    is_plain = name.isascii() and name.replace("_", "").isalnum()  # it is spelled one way only
    return f"""contains({row}._extra, '"{name}"')""" if is_plain else "true"


def _fetch(db: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple[Any, ...]]:
    found = db.execute(query)
    while rows := found.fetchmany(BATCH):
        yield from rows


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
    keys = KEYS["line" if len(rows[0].key) == len(KEYS["line"]) else "record"]
    columns = {
        name: pa.array([each.key[at] for each in rows], ARROW.get(name, pa.string()))
        for at, name in enumerate(keys)
    }
    for role, (name, of_type) in roles.items():
        columns[name] = pa.array([each.values.get(role) for each in rows], of_type)
    columns["unread"] = pa.array([",".join(each.unread) or None for each in rows], pa.string())
    columns["unread_text"] = pa.array([each.text for each in rows], pa.string())
    _create(db, table, columns)


def table_kind(name: str) -> str:
    """Return what a statement that creates a table of a name calls it."""
    return "TEMP TABLE" if name.startswith("temp.") else "TABLE"


def _create(db: duckdb.DuckDBPyConnection, table: str, columns: dict[str, pa.Array]) -> None:
    rows = db.from_arrow(pa.table(columns))
    rows.query("added", f"CREATE {table_kind(table)} {table} AS FROM added")
