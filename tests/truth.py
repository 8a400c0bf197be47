"""What a table must hold for a list of records: flattened in plain Python, value by value."""

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb

Row = dict[str, Any]


def column(name: str) -> str:
    """Return the column that a member becomes: `usageId` is `usage_id`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def flatten(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the scalar members of a record by column; arrays are left out."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{column(name)}__")
        elif not isinstance(value, list):
            yield prefix + column(name), value


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


def table_rows(db: duckdb.DuckDBPyConnection, sql: str) -> list[Row]:
    """Return a query's rows as dictionaries."""
    found = db.sql(sql)
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def differences(rows: list[Row], records: list[dict[str, Any]], key: str) -> list[str]:
    """Return where rows are not exactly these records, all scalar members of each."""
    held = {row["_key"]: row for row in rows}
    sent = {record[key]: record for record in records}
    found = [f"{len(rows)} rows have {len(held)} keys"] if len(rows) != len(held) else []
    found += [f"{name} is missing" for name in sent.keys() - held.keys()]
    found += [f"{name} is too many" for name in held.keys() - sent.keys()]
    for name in sent.keys() & held.keys():
        found += [f"{name}: {each}" for each in row_differences(held[name], sent[name])]
    return found


def row_differences(row: Row, record: Mapping[str, Any]) -> list[str]:
    """Return where one row is not exactly one record."""
    expected = dict(flatten(record))
    own = {name for name in row if name.startswith("_") or name.endswith(("__offset", "__count"))}
    return [
        f"{name} holds {row.get(name)!r}, sent was {expected.get(name)!r}"
        for name in (row.keys() - own) | expected.keys()
        if not same(row.get(name), expected.get(name))
    ]
