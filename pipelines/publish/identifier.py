"""Finds an identifier in raw records and in the tables of a version, and deletes those rows."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

import duckdb
import pyarrow as pa

from pipelines.core.text import quote_identifier
from pipelines.load.records import UnusableRecord, read_records, to_decimal
from pipelines.reconcile.statements import REMEMBERED

Position = tuple[str, int, int]
"""Scan, page and row of a record."""
RowVersion = tuple[str, str, datetime]
"""Connection, key and begin of one version of a record."""
POSITIONS: Final = pa.schema([("scan_id", pa.string()), ("page", pa.int32()), ("row", pa.int32())])
ROWS: Final = pa.schema(
    [
        ("connection", pa.string()),
        ("key", pa.string()),
        ("valid_from", pa.timestamp("us", tz="UTC")),
    ]
)
NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
RowVersions = dict[str, set[RowVersion]]
"""Versions of records by stream."""
TABLES: Final = """
SELECT columns.table_name, list((columns.column_name, columns.data_type))
FROM duckdb_columns() AS columns
SEMI JOIN duckdb_tables() AS tables USING (database_oid, table_oid)
WHERE columns.schema_name = 'history' AND columns.database_name = current_database()
GROUP BY columns.table_name
"""
SELECT_ROWS: Final = """
SELECT history._connection, history.{key}, history._valid_from, history._extra, {is_in_column}
FROM history.{table} AS history
WHERE {is_in_column} OR contains(history._extra, $text)
"""
SELECT_AT: Final = """
SELECT history._connection, history._key, history._valid_from
FROM history.{table} AS history
JOIN erased_positions AS erased
    ON (erased.scan_id, erased.page, erased.row) = (history._scan_id, history._page, history._row)
"""
SELECT_QUARANTINED: Final = "SELECT DISTINCT records.raw FROM quarantine.records AS records"
DELETE_ROWS: Final = """
DELETE FROM history.{table} AS history
USING erased_rows AS erased
WHERE (erased.connection, erased.key, erased.valid_from)
    = (history._connection, history.{key}, history._valid_from)
"""
DELETE_QUARANTINED: Final = """
DELETE FROM quarantine.records WHERE list_contains($raws::VARCHAR[], records.raw)
"""
DELETE_FINDINGS: Final = """
DELETE FROM meta.load_findings
WHERE contains(load_findings.message, $identifier) OR contains(load_findings.subject, $identifier)
"""

DELETE_REMEMBERED: Final = """
DELETE FROM reconciliation.{0} WHERE contains(CAST({0} AS VARCHAR), $identifier)
"""


@dataclass(frozen=True)
class Identifier:
    """A text or a number that records contain as a value; names of members do not count."""

    text: str

    @cached_property
    def number(self) -> Decimal | None:
        """The identifier as a number; None if it is none."""
        return to_decimal(self.text) if NUMBER.fullmatch(self.text) else None

    @property
    def json_text(self) -> str:
        """The identifier inside a JSON string."""
        return json.dumps(self.text, ensure_ascii=False)[1:-1]

    @cached_property
    def _digits(self) -> bytes:
        """What every spelling of it contains, where it has neither a point nor an escape."""
        if self.number is None:
            return self.json_text.encode()
        return "".join(map(str, self.number.as_tuple().digits)).strip("0").encode()

    def is_in_record(self, raw: bytes) -> bool:
        """Return whether a raw record contains the identifier; numbers are equal by value."""
        plain = raw if self.number is None else raw.replace(b".", b"")
        if self._digits not in plain and b"\\" not in raw:
            return False
        (record,) = read_records([raw])
        if isinstance(record, UnusableRecord):
            return self.text.encode() in raw or self.json_text.encode() in raw
        return self._is_in(record)

    def _is_in(self, value: Any) -> bool:
        if isinstance(value, dict):
            return any(map(self._is_in, value.values()))
        if isinstance(value, list):
            return any(map(self._is_in, value))
        return type(value) is not bool and value is not None and self._equals(str(value))

    def _equals(self, text: str) -> bool:
        return text == self.text or (
            self.number is not None and Identifier(text).number == self.number
        )

    def rows_with_value(self, db: duckdb.DuckDBPyConnection) -> RowVersions:
        """Return the versions of records whose columns, or those of their lists, contain it."""
        found: RowVersions = defaultdict(set)
        for table, columns in db.execute(TABLES).fetchall():
            found[_stream(table)].update(self._in_table(db, table, columns))
        return found

    def rows_at(
        self, db: duckdb.DuckDBPyConnection, stream: str, positions: Iterable[Position]
    ) -> set[RowVersion]:
        """Return the versions of records that were made of the records at positions."""
        if stream not in {table for table, _columns in db.execute(TABLES).fetchall()}:
            return set()
        _register(db, "erased_positions", POSITIONS, positions)
        return set(db.execute(SELECT_AT.format(table=quote_identifier(stream))).fetchall())

    def _in_table(
        self, db: duckdb.DuckDBPyConnection, table: str, columns: Sequence[tuple[str, str]]
    ) -> Iterator[RowVersion]:
        query = SELECT_ROWS.format(
            table=quote_identifier(table),
            key=_key(table),
            is_in_column=" OR ".join(["false", *self._conditions(columns)]),
        )
        values = {"identifier": self.text, "text": self.json_text}
        bound = {name: value for name, value in values.items() if f"${name}" in query}
        for *row, extra, is_in_column in db.execute(query, bound).fetchall():
            if is_in_column or self._is_in(json.loads(extra)):
                yield row[0], row[1], row[2]

    def _conditions(self, columns: Sequence[tuple[str, str]]) -> Iterator[str]:
        for name, of_type in columns:
            column = f"history.{quote_identifier(name)}"
            if name.startswith("_"):
                continue
            is_list = of_type.endswith("[]")
            scale = int(of_type.strip("[)]").rpartition(",")[2]) if "," in of_type else 0
            text = "" if self.number is None else f"{self.number:.{scale}f}"
            if of_type.startswith("VARCHAR"):
                value = "$identifier"
            elif (
                of_type.startswith(("DECIMAL", "BIGINT")) and text and Decimal(text) == self.number
            ):
                column, value = f"CAST({column} AS VARCHAR{of_type[-2:] * is_list})", f"'{text}'"
            else:
                continue
            yield f"list_contains({column}, {value})" if is_list else f"{column} = {value}"

    def delete_from_version(self, db: duckdb.DuckDBPyConnection, rows: RowVersions) -> None:
        """Delete versions of records with their children, quarantined records and texts."""
        for table, _columns in db.execute(TABLES).fetchall():
            _register(db, "erased_rows", ROWS, rows[_stream(table)])
            db.execute(DELETE_ROWS.format(table=quote_identifier(table), key=_key(table)))
        db.execute(DELETE_QUARANTINED, {"raws": self.quarantined(db)})
        db.execute(DELETE_FINDINGS, {"identifier": self.text})

    def delete_remembered(self, db: duckdb.DuckDBPyConnection) -> None:
        """Delete what reconciliation remembers of earlier versions, if it contains the text."""
        for table in REMEMBERED:
            with suppress(duckdb.CatalogException):  # nothing is mapped
                db.execute(DELETE_REMEMBERED.format(table), {"identifier": self.text})

    def quarantined(self, db: duckdb.DuckDBPyConnection) -> list[str]:
        """Return the quarantined records that contain it."""
        found = db.execute(SELECT_QUARANTINED).fetchall()
        return [raw for (raw,) in found if self.is_in_record(raw.encode())]


def _stream(table: str) -> str:
    return table.partition("__")[0]


def _key(table: str) -> str:
    return "_parent_key" if "__" in table else "_key"


def _register(
    db: duckdb.DuckDBPyConnection, name: str, schema: Any, rows: Iterable[tuple[Any, ...]]
) -> None:
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    db.register(name, pa.Table.from_pylist(named, schema))
