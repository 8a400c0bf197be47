"""An independent witness of landing: every value of every record against the tables, one by one.

It reads the service's bytes with Python's own JSON reader (numbers as Decimal) and the tables with
plain SQL, and shares no code with the decoder.
"""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import duckdb

LINEAGE = {"_connection", "_page", "_row", "_run", "_key", "_digest"}
LINEAGE |= {"first_seen", "changed_at", "missing_since"}
Row = dict[str, Any]


def records(body: bytes) -> list[Row]:
    """Return a page's records, numbers as they are written."""
    return list(json.loads(body, parse_float=Decimal, parse_int=Decimal)["data"])


def assert_landed(database: duckdb.DuckDBPyConnection, stream: str, sent: list[Row]) -> int:
    """Compare every value of the records, in order, with the tables; return how many were compared.

    Nothing may be lost, changed or invented.
    """
    table = f'current."{stream}"'
    landed = rows(database, f"SELECT * FROM {table} ORDER BY rowid")
    assert len(landed) == len(sent)
    children: dict[str, list[Row]] = {}
    compared = 0
    for record, row in zip(sent, landed, strict=True):
        compared += _assert_row(record, row, children, stream)
    for child, items in children.items():
        found = rows(database, f'SELECT * FROM current."{child}" ORDER BY rowid')
        assert [row["idx"] for row in found] == [item["idx"] for item in items]
        for item, row in zip(items, found, strict=True):
            values = item["item"] if isinstance(item["item"], dict) else {"value": item["item"]}
            compared += _assert_row(values, row, {}, child)
    return compared


def rows(database: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    """Return a query's rows, DECIMAL as Decimal and TIMESTAMPTZ as aware datetime."""
    found: list[Row] = database.sql(query).to_arrow_table().to_pylist()
    return found


def _assert_row(record: Row, row: Row, children: dict[str, list[Row]], table: str) -> int:
    expected = 0
    for path, value in _leaves(record, ()):
        column = "__".join(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower() for key in path)
        if isinstance(value, list):
            assert row[f"{column}__count"] == len(value), (table, column)
            items = children.setdefault(f"{table}__{column}", [])
            items += [{"idx": idx, "item": item} for idx, item in enumerate(value)]
        else:
            _assert_equal(value, row, column)
            expected += isinstance(row.get(column), datetime)  # its offset is a column of its own
        expected += value is not None
    own = LINEAGE | {"idx"} | _inherited(row)
    filled = [name for name, cell in row.items() if cell is not None and name not in own]
    assert len(filled) == expected, (table, filled, record)
    return expected


def _inherited(row: Row) -> set[str]:
    """Name the parent's key, which a child row has besides its own values."""
    names = list(row)
    return {names[names.index("_connection") + 1]} if "idx" in row else set()


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, (*path, key))
    else:
        yield path, value


def _assert_equal(value: Any, row: Row, column: str) -> None:
    cell = row[column] if value is not None else row.get(column)
    if isinstance(cell, datetime):
        assert cell == datetime.fromisoformat(value), column
        assert value.endswith(row[f"{column}__offset"]), column
    elif isinstance(cell, Decimal) or (isinstance(cell, int) and not isinstance(cell, bool)):
        assert cell == Decimal(value), column
        assert not isinstance(value, bool), column
    else:
        assert cell == value, column
        assert type(cell) is type(value), column
