"""Finds an identifier in raw records and in the tables of a version, and deletes those rows."""

import json
import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from typing import Any, Final

import duckdb
import pyarrow as pa

from pipelines.archive.records import ERASED_RECORD
from pipelines.core import stop
from pipelines.core.text import quote_identifier
from pipelines.load.paths import FieldPath
from pipelines.load.records import UnusableRecord, read_record, to_decimal
from pipelines.versions.spellings import OtherSpellings, Spelling, parse_json_text, unescape

Position = tuple[str, int, int]
"""Scan, page and row of a record."""
MANY: Final = 10_000  # rows in memory
NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
# Tables of items before those of their records, with their columns of values. JSON would round
# decimals, so they become text.
TABLES: Final = """
SELECT
    tables.table_name,
    list(
        format('CAST(history."{}" AS ', replace(columns.column_name, '"', '""'))
        || regexp_replace(columns.type, 'DECIMAL[(][^)]*[)]', 'VARCHAR') || ')'
    ) FILTER (columns.part = 'value')
FROM duckdb_tables() AS tables
LEFT JOIN meta.columns AS columns ON columns.table_name = tables.table_name
WHERE tables.schema_name = 'history' AND tables.database_name = current_database()
GROUP BY tables.table_name
ORDER BY tables.table_name DESC
"""
QUARANTINED: Final = """
SELECT records.scan_id, records.page, records.row, records.raw FROM quarantine.records AS records
"""
MAPS: Final = (
    "SELECT columns.steps FROM meta.columns AS columns WHERE columns.column_name = '_name'"
)
# Each row as if it were a raw record. A million rows of 20 columns cost 6 CPU seconds.
ROWS: Final = """
SELECT
    record._scan_id, record._page, record._row,
    json_object('values', json_array({values})) AS raw
FROM history.{table} AS history
JOIN history.{stream} AS record
    ON (record._connection, record._key, record._valid_from)
    = (history._connection, history.{key}, history._valid_from)
"""
COUNT: Final = """
SELECT concat(history._connection, '/', '{name}') AS list, count(*) AS rows
FROM history.{stream} AS history
GROUP BY ALL
"""
COUNT_QUARANTINED: Final = """
SELECT concat(records.connection, '/', records.stream) AS list, count(*) AS rows
FROM quarantine.records AS records
GROUP BY ALL
"""
DELETE_ROWS: Final = """
DELETE FROM history.{table} AS history
USING history.{stream} AS record, positions
WHERE (positions.scan_id, positions.page, positions.row)
    = (record._scan_id, record._page, record._row)
    AND (record._connection, record._key, record._valid_from)
    = (history._connection, history.{key}, history._valid_from)
"""
DELETE_QUARANTINED: Final = """
DELETE FROM quarantine.records USING positions
WHERE (positions.scan_id, positions.page, positions.row)
    = (records.scan_id, records.page, records.row)
"""
TEXTS: Final = """
DELETE FROM meta.load_findings AS texts
WHERE contains(replace(CAST(texts AS VARCHAR), '\\', ''), replace($1, '\\', ''))
"""


@dataclass(frozen=True)
class Identifier:
    """A text or a number that records contain as a value.

    Names of members count only at the paths `maps`: there they are data, such as partners.
    """

    text: str
    maps: frozenset[FieldPath] = frozenset()

    @property
    def digest(self) -> str:
        """What is kept of it for good, with which macro `hidden` of `reconcile` compares."""
        return sha256(self.text.encode()).hexdigest()[:16]

    @cached_property
    def number(self) -> Decimal | None:
        """The identifier as a number; None if it is none."""
        return to_decimal(self.text) if NUMBER.fullmatch(self.text) else None

    @cached_property
    def _needle(self) -> str:
        """What every spelling of it contains if points are left out and nothing is escaped."""
        if self.number is None:
            return self.text.replace(".", "")
        # A number may be sent with more zeros at both ends, and with an exponent.
        return "".join(map(str, self.number.as_tuple().digits)).strip("0")

    def is_in_record(self, raw: bytes) -> bool:
        """Return whether a raw record contains the identifier; numbers are equal by value."""
        # Most records are decided here, without being decoded. A backslash may hide any letter.
        is_possible = self._needle.encode() in raw.replace(b".", b"") or b"\\" in raw
        # An erased record is `null`, in which a search for a part of that word would find itself.
        if not is_possible or raw == ERASED_RECORD:
            return False
        record = read_record(raw)
        if isinstance(record, UnusableRecord):
            in_json = json.dumps(self.text, ensure_ascii=False)[1:-1]  # without its quotes
            return self.text.encode() in raw or in_json.encode() in raw
        return self._is_in(record) or any(self._is_name(record, path) for path in self.maps)

    def _is_name(self, value: Any, path: FieldPath) -> bool:
        """Return whether the object at a path has the identifier as a name."""
        if not path:
            return isinstance(value, dict) and any(map(self.is_equal, value))
        step, *rest = path
        return any(self._is_name(inner, tuple(rest)) for inner in _step_into(value, step))

    def _is_in(self, value: Any) -> bool:
        if isinstance(value, dict):
            return any(map(self._is_in, value.values()))
        if isinstance(value, list):
            return any(map(self._is_in, value))
        if value is None or type(value) is bool:
            return False
        return self.is_equal(str(value))

    def is_equal(self, text: str) -> bool:
        """Return whether a text is the value, spells it as JSON does, or is JSON that has it."""
        is_equal_number = self.number is not None and Identifier(text).number == self.number
        if is_equal_number or text == self.text or unescape(text) == self.text:
            return True
        return self._is_in(parse_json_text(text))

    def other_spelling(self, raw: bytes) -> tuple[Spelling, str] | None:
        """Return the nearest other spelling of the value in a raw record, and the text with it."""
        if not self._others.is_possible(raw):
            return None
        record = read_record(raw)
        return None if isinstance(record, UnusableRecord) else self._others.nearest(record)

    @cached_property
    def _others(self) -> OtherSpellings:
        return OtherSpellings(self.text)

    def delete_from(self, db: duckdb.DuckDBPyConnection, positions: AbstractSet[Position]) -> None:
        """Delete a version's records at positions, with their items."""
        columns = [pa.array(column) for column in zip(*positions, strict=True)]
        db.register("positions", pa.table(columns, ["scan_id", "page", "row"]))
        for names in _tables(db):
            db.execute(DELETE_ROWS.format(**names))
        db.execute(DELETE_QUARANTINED)

    def erase_texts(self, db: duckdb.DuckDBPyConnection) -> None:
        """Erase it from the sentences of a version."""
        db.execute(TEXTS, [self.text])


def map_paths(db: duckdb.DuckDBPyConnection) -> set[FieldPath]:
    """Return the paths of objects whose names are data; None is any name of such an object."""
    maps = set[FieldPath]()
    for (text,) in db.execute(MAPS).fetchall():
        *path, _item, _name = json.loads(text)
        maps.add(tuple(path))
    return {_path_in_record(path, maps) for path in maps}


def _path_in_record(path: FieldPath, maps: AbstractSet[FieldPath]) -> FieldPath:
    """Return a path of tables as a record has it: there, no step leads from a name to its value."""
    steps = []
    for depth, step in enumerate(path):
        leads_to_value = depth > 0 and path[: depth - 1] in maps
        if not leads_to_value:
            steps.append(step)
    return tuple(steps)


def _step_into(value: Any, step: str | None) -> Iterable[Any]:
    """Return the values that one step of a path leads to; None leads to each item or member."""
    if isinstance(value, dict):
        return value.values() if step is None else [value.get(step)]
    if isinstance(value, list) and step is None:
        return value
    return []


def raw_rows(db: duckdb.DuckDBPyConnection) -> Iterator[tuple[Position, bytes]]:
    """Yield the rows of a version, those in quarantine too, as raw records with their position.

    Where a scan file is gone, only the version has its values; where no column holds a value, only
    the scan file.
    """
    queries = [QUARANTINED]
    queries.extend(ROWS.format(**names) for names in _tables(db))
    for query in queries:
        db.execute(query)
        while rows := db.fetchmany(MANY):
            stop.raise_if_requested()
            for scan_id, page, row, raw in rows:
                yield (scan_id, page, row), raw.encode()


def count_rows(db: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return the number of row versions and records in quarantine by `connection/stream`."""
    counts = [COUNT_QUARANTINED]
    for names in _tables(db):
        count = COUNT.format(name=names["name"], stream=names["stream"])
        if count not in counts:  # a stream has several tables, and is counted once
            counts.append(count)
    query = " UNION ALL ".join(counts)
    sums = f"SELECT counts.list, sum(counts.rows)::BIGINT FROM ({query}) AS counts GROUP BY ALL"
    return dict(db.execute(sums).fetchall())


def _tables(db: duckdb.DuckDBPyConnection) -> Iterator[dict[str, str]]:
    """Yield what statements need to know of each table of history."""
    for table, values in db.execute(TABLES).fetchall():
        stream, _, items = table.partition("__")
        yield {
            "table": quote_identifier(table),
            "name": stream,  # validated when it was configured
            "stream": quote_identifier(stream),
            "key": "_parent_key" if items else "_key",
            "values": ", ".join(["history._extra::JSON", *(values or [])]),
        }
