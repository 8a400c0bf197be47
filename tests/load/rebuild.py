"""Takes records apart into values by path, and the tables too, to compare what was sent."""

import json
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import MAX_PREC, Context, Decimal
from typing import Any

from tests.load.scans import Warehouse

EXACT = Context(prec=MAX_PREC)
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
LENGTH = "number of items"


def values_of(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """Return every value by its path, and the length of every list; null is nothing."""
    if isinstance(value, dict):
        parts = [values_of(each, (*path, name)) for name, each in value.items()]
    elif isinstance(value, list):
        parts = [{(*path, LENGTH): len(value)}]
        parts += [values_of(each, (*path, at)) for at, each in enumerate(value)]
    else:
        parts = [] if value is None else [{path: plain(value)}]
    return {at: each for part in parts for at, each in part.items()}


def plain(value: Any) -> Any:
    """Return a value in one form: a number equals its text, a time its text."""
    if isinstance(value, bool):
        return ("boolean", value)
    text = value.isoformat() if isinstance(value, date) else str(value)
    if NUMBER.fullmatch(text):
        return Decimal(text).normalize(EXACT) or Decimal(0)
    try:
        return datetime.fromisoformat(text).isoformat() if "T" in text else text
    except ValueError:
        return text


def stored_values(warehouse: Warehouse, stream: str = "usage") -> dict[str, Any]:
    """Return the values of the current records by key, as `values_of` does."""
    columns = warehouse.rows(
        "SELECT c.table_name, c.column_name, c.part, c.steps FROM meta.columns AS c "
        f"WHERE c.stream = '{stream}' AND c.part <> 'offset' ORDER BY c.position"
    )
    found: dict[str, dict[tuple[Any, ...], Any]] = {}
    for table in {stream: None, **{name: None for name, *_ in columns}}:
        listed = [
            (name, part, json.loads(steps)) for at, name, part, steps in columns if at == table
        ]
        cursor = warehouse.db.execute(f'SELECT * FROM current."{table}"')
        names = [each[0] for each in cursor.description or ()]
        for values in cursor.fetchall():
            row = dict(zip(names, values, strict=True))
            record = found.setdefault(row["_key" if "_key" in row else "_parent_key"], {})
            record.update(_row_values(row, listed))
    return found


def _row_values(row: dict[str, Any], columns: list[Any]) -> dict[tuple[Any, ...], Any]:
    """Return the values of one row of a table."""
    around = sorted((name for name in row if name.startswith("_parent_index")), reverse=True)
    places = [row[name] for name in (*around, "_index") if name in row]
    found: dict[tuple[Any, ...], Any] = {}
    for name, part, steps in columns:
        left, value = iter(places), row[name]
        path = tuple(next(left, None) if step is None else step for step in steps)
        if isinstance(value, datetime):
            value = value.astimezone(_zone(row[f"{name}__offset"]))
        if part == "count":
            found |= {} if value is None else {(*path, LENGTH): value}
        else:
            found |= values_of(value, path[:-1] if steps[-1] is None else path)
    steps, left = columns[0][2] if places else [], iter(places)
    ends = [at + 1 for at, step in enumerate(steps) if step is None]
    outer = steps[: ends[len(places) - 1]] if places else []
    of_row = tuple(next(left) if step is None else step for step in outer)
    return found | values_of(json.loads(row["_extra"] or "null"), of_row)


def _zone(offset: str) -> timezone:
    if offset == "Z":
        return UTC
    sign = -1 if offset[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(offset[1:3]), minutes=int(offset[4:])))
