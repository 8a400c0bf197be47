"""What a table must hold for a list of records: both taken apart into values by their path."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any, NamedTuple

import duckdb

EXACT = Context(MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,9})?")
LENGTH = "number of items"
Values = dict[tuple[Any, ...], Any]


class Held(NamedTuple):
    """A row of a table with the rows of its child tables, as the values of its record."""

    key: str
    valid_from: datetime
    valid_to: datetime | None
    end_reason: str | None
    values: Values


def values_of(value: Any, path: tuple[Any, ...] = ()) -> Values:
    """Return every value by its path, and the length of every list; null is nothing."""
    value = opened(value)
    if isinstance(value, dict):
        parts = [values_of(each, (*path, name)) for name, each in value.items()]
    elif isinstance(value, list):
        parts = [{(*path, LENGTH): len(value)}]
        parts += [values_of(each, (*path, at)) for at, each in enumerate(value)]
    else:
        parts = [] if value is None else [{path: plain(value)}]
    return {at: each for part in parts for at, each in part.items()}


def opened(value: Any) -> Any:
    """Return what JSON text of an object or list holds: a column of text has such values so."""
    if isinstance(value, str) and value[:1] in {"{", "["}:
        try:
            return json.loads(value, parse_float=Decimal)
        except ValueError:
            return value
    return value


def plain(value: Any) -> Any:
    """Return a value in one form: a number, a boolean and a time equal their texts."""
    if isinstance(value, bool):
        return json.dumps(value)
    text = value.isoformat() if isinstance(value, date) else str(value)
    if NUMBER.fullmatch(text):
        return Decimal(text).normalize(EXACT) or Decimal(0)
    try:
        return datetime.fromisoformat(text).isoformat() if "T" in text else text
    except ValueError:
        return text


def by_key(texts: Iterable[str], key: str) -> dict[str, list[Values]]:
    """Return records by their key, decoded without floating point."""
    found: dict[str, list[Values]] = {}
    for record in (json.loads(text, parse_float=Decimal) for text in texts):
        found.setdefault(record[key], []).append(values_of(record))
    return found


def sent(records: Iterable[Mapping[str, Any]], key: str) -> dict[str, Values]:
    """Return the values of records by their key."""
    return {record[key]: values_of(record) for record in records}


def held(db: duckdb.DuckDBPyConnection, schema: str, stream: str) -> list[Held]:
    """Return the rows of a table of `current` or `history`."""
    columns = db.execute(
        "SELECT c.table_name, c.column_name, c.part, c.steps FROM meta.columns AS c "
        "WHERE c.stream = ? AND c.part <> 'offset' ORDER BY c.position",
        [stream],
    ).fetchall()
    found: dict[tuple[Any, ...], Held] = {}
    for table in {stream: None, **{name: None for name, *_ in columns}}:
        listed = [
            (name, part, json.loads(steps)) for at, name, part, steps in columns if at == table
        ]
        cursor = db.execute(f'FROM {schema}."{table}"')
        names = [each[0] for each in cursor.description or ()]
        rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
        for row in rows:
            period = row["_valid_from"], row.get("_valid_to")
            if table == stream:
                row_of = Held(row["_key"], *period, row.get("_end_reason"), {})
                found[row_of[:3]] = row_of
            else:  # KeyError: a row that belongs to no record
                row_of = found[row["_parent_key"], *period]
            row_of.values.update(_row_values(row, listed))
        assert table != stream or len(found) == len(rows), "a row is there twice"
    return [*found.values()]


def current(db: duckdb.DuckDBPyConnection, stream: str) -> dict[str, Values]:
    """Return the values of the current records by their key."""
    return {row.key: row.values for row in held(db, "current", stream)}


def _row_values(row: dict[str, Any], columns: list[Any]) -> dict[tuple[Any, ...], Any]:
    """Return the values of one row of a table."""
    around = sorted((name for name in row if name.startswith("_parent_index")), reverse=True)
    places = [row[name] for name in (*around, "_index") if name in row]
    found: dict[tuple[Any, ...], Any] = {}
    for name, part, steps in columns:
        left, value = iter(places), row[name]
        path = tuple(next(left, None) if step is None else step for step in steps)
        if isinstance(value, datetime):
            offset = row[f"{name}__offset"]
            value = value.astimezone(_zone(offset)) if offset else value.astimezone(UTC).date()
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
