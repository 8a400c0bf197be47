"""A kept home: unpacks it, and compares what a version holds now with what it held before."""

import io
import json
import re
import tarfile
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import zstandard

from pipelines.config.home import Home
from tests.homes.service import Service

FOLDER = Path(__file__).parent
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")  # `007` is another text than 7
ADDRESS = "http://127.0.0.1:1"  # of the service in a kept home
# A row version is the same one if these are equal.
IDENTITY = ("_connection", "_key", "_parent_key", "_index", "_valid_from")
TABLES = """
SELECT columns.table_schema, columns.table_name
FROM information_schema.columns AS columns
WHERE columns.table_schema IN ('history', 'current') AND columns.column_name = '_valid_from'
ORDER BY ALL
"""
Values = dict[str, set[Any]]
"""What a row holds: by column, its value, or what `_extra` has instead."""
Rows = dict[tuple[Any, ...], Values]
"""Row versions by identity."""


def unpacked(name: str, folder: Path, service: Service) -> Home:
    """Unpack a kept home; its connection reads the service from now on."""
    content = zstandard.ZstdDecompressor().stream_reader((FOLDER / name).read_bytes()).read()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(folder, filter="tar")
    home = Home(folder / "home")
    text = home.connections_file.read_text()
    home.connections_file.write_text(text.replace(ADDRESS, service.url))
    return home


def held(file: Path) -> dict[str, Rows]:
    """Return every row of `history` and `current` in a version, by table."""
    with duckdb.connect(file, read_only=True) as db:
        db.execute("SET TimeZone = 'UTC'")
        return {
            f"{schema}.{table}": dict(_rows(db, f'{schema}."{table}"'))
            for schema, table in db.execute(TABLES).fetchall()
        }


def _rows(db: duckdb.DuckDBPyConnection, table: str) -> Iterator[tuple[tuple[Any, ...], Values]]:
    found = db.execute(f"SELECT * FROM {table}")
    names = [name for name, *_ in found.description or ()]
    for cells in found.fetchall():
        row = dict(zip(names, cells, strict=True))
        identity = tuple(row.pop(name, None) for name in IDENTITY)
        yield identity, _values(row)


def _values(row: dict[str, Any]) -> Values:
    """Return what each field of a row holds, whether in its column or in `_extra`."""
    values: Values = {name: {said(value)} for name, value in row.items() if value is not None}
    extra = json.loads(row["_extra"] or "{}", parse_float=Decimal)
    values.pop("_extra", None)
    for name, value in extra.items():
        plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
        values.setdefault(plain, set()).add(said(value))
    return values


def said(value: Any) -> Any:
    """Return a value so that two spellings of one value are equal: `"1500"` and 1500.00.

    A date is the time at which it begins in UTC, a boolean is 0 or 1.
    """
    if isinstance(value, list):
        return tuple(said(each) for each in value)
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, str):
        return _read(value)
    return Decimal(value)


def _read(text: str) -> Any:
    if NUMBER.fullmatch(text):
        return Decimal(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return text
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def lost(before: dict[str, Rows], now: dict[str, Rows]) -> list[str]:
    """Return what an older version held and a newer one does not, one text for each value.

    A row version of `history` that was the last one may have ended since; rows of `current` are
    compared where they are still current.
    """
    found: list[str] = []
    for table, rows in before.items():
        for identity, values in rows.items():
            row = now.get(table, {}).get(identity)
            if row is not None:
                found += [f"{table} {identity} {each}" for each in _lost_values(values, row)]
            elif table.startswith("history."):
                found.append(f"{table} {identity}: no such row")
    return found


def _lost_values(before: Values, now: Values) -> Iterator[str]:
    for name, expected in before.items():
        if not expected <= now.get(name, set()):
            yield f"{name}: {expected}, now {now.get(name)}"
