"""Puts records together again from the tables, to compare them with what was sent."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import MAX_PREC, Context, Decimal
from typing import Any

from tests.load.scans import Warehouse

EXACT = Context(prec=MAX_PREC)
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def plain(value: Any) -> Any:
    """Return a value in one form: null and missing are equal, a number equals its text."""
    if isinstance(value, dict):
        members = {name: plain(each) for name, each in value.items()}
        return {name: each for name, each in members.items() if each is not None} or None
    if isinstance(value, list):
        return [plain(each) for each in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    return _plain_text(str(value))


def _plain_text(text: str) -> Any:
    if NUMBER.fullmatch(text):
        return Decimal(text).normalize(EXACT) or Decimal(0)
    try:
        return datetime.fromisoformat(text).isoformat() if "T" in text else text
    except ValueError:
        return text


def rebuild(warehouse: Warehouse, stream: str = "usage") -> dict[str, Any]:
    """Return the current records by key, in the form of `plain`."""
    listed = warehouse.rows(
        "SELECT table_name, column_name, part, steps FROM meta.columns "
        f"WHERE stream = '{stream}' ORDER BY position"
    )
    columns = [(table, name, part, json.loads(steps)) for table, name, part, steps in listed]
    tables: dict[str, list[Any]] = {stream: [], **{table: [] for table, *_ in columns}}
    for table, name, part, steps in columns:
        tables[table].append((name, part, steps))
    found: dict[str, Any] = {}
    for table in sorted(tables, key=lambda name: name.count("__")):
        for row in _rows(warehouse, table):
            _add(found, row, tables[table])
    return {key: plain(_without_rest(record)) for key, record in found.items()}


def _rows(warehouse: Warehouse, table: str) -> list[dict[str, Any]]:
    found = warehouse.db.execute(f'SELECT * FROM current."{table}"')
    names = [each[0] for each in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _add(found: dict[str, Any], row: Mapping[str, Any], columns: list[Any]) -> None:
    """Add a row of a table to the record that it is part of."""
    key = row.get("_key", row.get("_parent_key"))
    record = found.setdefault(key, {})
    outer = [name for name in row if name.startswith("_parent_index")]
    places = [row[name] for name in sorted(outer, reverse=True)]
    places += [row["_index"]] if "_index" in row else []
    for name, part, steps in columns:
        value: Any = None if name is None else row[name]
        if part == "offset" or value is None:
            continue
        if f"{name}__offset" in row and isinstance(value, datetime):
            value = value.astimezone(_zone(row[f"{name}__offset"]))
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = value.isoformat()
        path = steps[:-1] if steps[-1] is None else steps
        _put(record, path, places, [None] * value if part == "count" else value)
    if row["_extra"] is not None:
        _put(record, _row_steps(columns, places), places, _Rest(json.loads(row["_extra"])))


class _Rest:
    """The rest of a row, to be merged into it."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _row_steps(columns: list[Any], places: list[int]) -> list[Any]:
    """Return the path of the rows of a table: up to the last list around them."""
    if not places:
        return []
    steps = columns[0][2]
    ends = [at for at, step in enumerate(steps) if step is None]
    return list(steps[: ends[len(places) - 1] + 1])


def _put(record: dict[str, Any], steps: list[Any], places: list[int], value: Any) -> None:
    """Set what is at a path; a rest is kept beside the members of its row."""
    at: Any = record
    left = list(places)
    for number, step in enumerate(steps):
        last = number == len(steps) - 1 and not isinstance(value, _Rest)
        if step is None:
            place = left.pop(0)
            at[place] = at[place] if isinstance(at[place], dict) else {}
            at = at[place]
        elif last:
            at[step] = value if not isinstance(at.get(step), list) or value else at[step]
        else:
            at = at.setdefault(step, {})
    if isinstance(value, _Rest):
        at["\0rest"] = value.value


def _without_rest(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_rest(each) for each in value]
    if not isinstance(value, dict):
        return value
    members = {name: _without_rest(each) for name, each in value.items() if name != "\0rest"}
    return _merge(members, value["\0rest"]) if "\0rest" in value else members


def _merge(members: Any, rest: Any) -> Any:
    if isinstance(members, dict) and isinstance(rest, dict):
        names = {**members, **rest}
        return {
            name: _merge(members[name], rest[name])
            if name in members and name in rest
            else names[name]
            for name in names
        }
    return rest


def _zone(offset: str) -> timezone:
    if offset == "Z":
        return UTC
    sign = -1 if offset[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(offset[1:3]), minutes=int(offset[4:])))
