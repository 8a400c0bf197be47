"""Quarantine: records that were read and that no table can hold, one row each, with the reason.

Schema `quarantine` of the work database, a table for each stream, published with the rest. Here:
which of a scan's rows are set aside and when they are too many. Not here: what a flaw is (record).
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from pipelines.api import record
from pipelines.api.record import Flaw
from pipelines.state.decisions import Kind
from pipelines.state.journal import LinkedPage
from pipelines.warehouse.archive import Manifest
from pipelines.warehouse.awaiting import Awaited, command
from pipelines.warehouse.database import append, exists, quoted, scalar, widen
from pipelines.warehouse.pages import Read

SCHEMA = "quarantine"
ONE_IN = 100  # of a scan's rows may be set aside, and one in any case
MEND = "the service has to mend it; each sync reads it again"
COLUMNS = pa.schema(
    [
        ("_connection", pa.string()),
        ("_key", pa.string()),
        ("_page", pa.string()),
        ("_row", pa.int32()),
        ("_run", pa.string()),
        ("path", pa.string()),
        ("expected", pa.string()),
        ("got", pa.string()),
        ("reason", pa.string()),
        ("remedy", pa.string()),
        ("quarantined_at", pa.timestamp("us", tz="UTC")),
    ]
)


@dataclass(frozen=True)
class SetAside:
    """One record that cannot be landed: where it lies, its key where that can be read, and why."""

    page: LinkedPage
    row: int
    key: str | None
    flaw: Flaw


def most(rows: int) -> int:
    """Return how many of so many rows may be set aside: 1 %, and one of a shorter list."""
    return max(1, rows // ONE_IN)


@dataclass
class Ward:
    """The records of one scan that are set aside, each once however often it was read.

    What was read again has the same key, else the same text and the same place in the list. Where
    the order of the list changes, equal texts are as many records as one page shows. Of the
    `nameless` nobody knows which records of the tables they are. `accepted`: a person said that so
    many may be set aside.
    """

    manifest: Manifest
    accepted: int = 0
    readings: int = 0
    nameless: int = 0
    records: dict[object, SetAside] = field(default_factory=dict)

    def admit(self, read: Read) -> dict[int, str]:
        """Set aside what is wrong; return by place among those read the keys that can be read.

        Keeps no more than decides that it is too much.
        """
        key, enough, named = self.manifest.key, self._most(self.manifest.rows), {}
        equal = Counter[tuple[int, bytes]]()
        for row, flaw in read.decoded.flaws.items():
            self.readings += 1
            text, (page, place) = bytes(read.portion.texts[row]), read.portion.place(row)
            name = None if key is None else record.identity(text, key)
            self.nameless += name is None
            equal[page.position, text] += 1  # on one page these are different records
            counted = self.manifest.counted  # then rows change their places
            where = equal[page.position, text] if counted else page.offset + place
            which = (where, hash(text)) if name is None else name
            if which in self.records or len(self.records) <= enough:
                self.records[which] = SetAside(page, place, name, flaw)
            if name is not None:
                named[row] = name
        return named

    def release(self, key: str) -> None:
        """Let a record go that a newer reading has sound."""
        self.records.pop(key, None)

    def clear(self) -> None:
        """Forget what was set aside: the pages are read again."""
        self.readings = self.nameless = 0
        self.records.clear()

    def judge(self, landed: int) -> None:
        """Raise Awaited where too many are set aside, or nothing else is left."""
        aside = len(self.records)
        if not aside or (aside <= self._most(landed + aside) and (landed or self.accepted)):
            return
        flaws = [each.flaw for each in self.records.values()]
        keys = sum(flaw.of_key for flaw in flaws)
        if keys and aside - keys <= self._most(landed + aside):
            kind = Kind.SCHEMA  # with their keys as text these rows are as sound as the others
            first = next(each for each in self.records.values() if each.flaw.of_key)
            more = " If its keys are so from now on, their column can become text: the rows there "
            more += "keep the text of theirs, and their history."
        else:
            kind, more = Kind.QUARANTINE, ""
            first = next(iter(self.records.values()))
        raise Awaited(
            kind,
            self.manifest,
            self.readings,
            f"{self.readings:,} of {self.manifest.rows:,} rows set aside. The first is row "
            f"{first.row} of the page at offset {first.page.offset}: {first.flaw}.{more}",
        )

    def _most(self, rows: int) -> int:
        return max(most(rows), self.accepted)

    def _remedy(self, flaw: Flaw) -> str:
        """Return what can be done about a row: of most, nobody but the service can do anything."""
        if not flaw.of_key:
            return MEND
        accept = command(Kind.SCHEMA, self.manifest.connection, self.manifest.stream)
        return f"{MEND}. Where more than one in {ONE_IN} rows are so, `{accept}` lets keys be text"

    def store(self, database: duckdb.DuckDBPyConnection, now: datetime) -> None:
        """Replace this connection's rows in the stream's quarantine."""
        database.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        table, manifest = quoted(SCHEMA, self.manifest.stream), self.manifest
        widen(database, table, COLUMNS.empty_table())
        database.execute(f"DELETE FROM {table} WHERE _connection = ?", [manifest.connection])
        rows = [self._row(each, now) for each in self.records.values()]
        append(database, table, pa.Table.from_pylist(rows, COLUMNS))

    def _row(self, aside: SetAside, now: datetime) -> dict[str, Any]:
        flaw = aside.flaw
        return {
            "_connection": self.manifest.connection,
            "_key": aside.key,
            "_page": aside.page.sha256,
            "_row": aside.row,
            "_run": self.manifest.run,
            "path": flaw.path,
            "expected": flaw.expected,
            "got": flaw.got,
            "reason": str(flaw),
            "remedy": self._remedy(flaw),
            "quarantined_at": now,
        }


def count(database: duckdb.DuckDBPyConnection, connection: str, stream: str) -> int:
    """Return how many records of a stream are set aside."""
    if not exists(database, SCHEMA, stream):
        return 0
    query = f"SELECT count(*) FROM {quoted(SCHEMA, stream)} WHERE _connection = ?"
    return scalar(database, query, [connection])


def rows(database: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Return every row that is set aside, of all streams, with the stream's name."""
    tables = database.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = ? ORDER BY ALL", [SCHEMA]
    ).fetchall()
    found: list[dict[str, Any]] = []
    for (stream,) in tables:
        query = f"SELECT * FROM {quoted(SCHEMA, stream)} ORDER BY _connection, _page, _row"
        its = database.sql(query).to_arrow_table().to_pylist()
        found += [{"stream": stream, **each} for each in its]
    return found
