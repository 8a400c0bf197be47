"""What a table must hold for a list of records: compared in plain Python, value by value."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb

Row = dict[str, Any]


@cache
def column(name: str) -> str:
    """Return the column that a member becomes: `usageId` is `usage_id`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def flatten(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the members of a record by column; a list of objects is named like its child table."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{column(name)}__")
            continue
        yield prefix + column(name), value
        if isinstance(value, list):
            yield f"{prefix}{column(name)}__count", len(value)


def same(held: object, sent: object) -> bool:
    """Return whether a table's value is exactly what the service sent."""
    if isinstance(sent, bool) or sent is None or held is None:
        return held is sent
    if isinstance(sent, int | Decimal):
        return isinstance(held, int | Decimal) and not isinstance(held, bool) and held == sent
    if isinstance(held, datetime):
        return held == datetime.fromisoformat(str(sent))
    if isinstance(held, date):
        return held == date.fromisoformat(str(sent))
    if isinstance(held, Decimal):
        return held == Decimal(str(sent))
    return held == sent


def _rows(db: duckdb.DuckDBPyConnection, sql: str) -> list[Row]:
    found = db.sql(sql)
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def table_records(db: duckdb.DuckDBPyConnection, schema: str, stream: str) -> list[Row]:
    """Return a table's rows, each with the rows of its child tables."""
    found = _rows(db, f"FROM {schema}.{stream}")
    names = "SELECT name FROM (SHOW ALL TABLES) WHERE schema = ? AND starts_with(name, ?)"
    for (table,) in db.execute(names, [schema, f"{stream}__"]).fetchall():
        member = table.removeprefix(f"{stream}__")
        parents = {(row["_key"], row["_valid_from"]): row for row in found}
        for row in found:
            row[member] = []
        for child in _rows(db, f"FROM {schema}.{table} AS child ORDER BY child._index"):
            # KeyError: a row that belongs to no record
            parents[child["_parent_key"], child["_valid_from"]][member].append(child)
    return found


def was_served(row: Row, served: Mapping[str, list[dict[str, Any]]]) -> bool:
    """Return whether a row is exactly one of the versions that the service showed."""
    return any(not row_differences(row, record) for record in served[row["_key"]])


def by_key(texts: Iterable[str], key: str) -> dict[str, list[dict[str, Any]]]:
    """Return records by their key, decoded without floating point."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in (json.loads(text, parse_float=Decimal) for text in texts):
        found.setdefault(record[key], []).append(record)
    return found


def differences(rows: list[Row], records: list[dict[str, Any]], key: str) -> list[str]:
    """Return where rows are not exactly these records."""
    sent, held = {record[key]: record for record in records}, [row["_key"] for row in rows]
    if sorted(held) != sorted(sent):
        return [f"{len(rows)} rows are held, {len(sent)} were sent", *sent.keys() ^ set(held)]
    pairs = [(row, sent[row["_key"]]) for row in rows]
    return [
        f"{row['_key']}: {each}" for row, record in pairs for each in row_differences(row, record)
    ]


def row_differences(row: Row, record: Mapping[str, Any]) -> list[str]:
    """Return where one row, the rows of its child tables included, is not exactly one record."""
    expected = {"_extra": None, **dict(flatten(record))}
    found = []
    for name in expected.keys() | {name for name in row if not name.startswith("_")}:
        held, sent = row.get(name), expected.get(name)
        if name.endswith("__offset"):
            time = expected.get(name.removesuffix("__offset"))
            sent = time and ("Z" if time.endswith("Z") else time[-6:])
        if isinstance(held, list):
            found += [f"{name}: {each}" for each in _list_differences(row, held, sent or [])]
        elif not same(held, sent):
            found.append(f"{name} holds {held!r}, sent was {sent!r}")
    return found


def _list_differences(row: Row, children: list[Row], objects: list[dict[str, Any]]) -> list[str]:
    """Return where the rows of a child table are not these objects, in this order."""
    places = [(child["_index"], child.get("_valid_to")) for child in children]
    if places != [(index, row.get("_valid_to")) for index in range(len(objects))]:
        return [f"rows {places} are held, {len(objects)} were sent"]
    return [each for pair in zip(children, objects, strict=True) for each in row_differences(*pair)]
