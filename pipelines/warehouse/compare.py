"""Which records that are read with other bytes say something else, and what kind of change it is.

Where a value in a column differs, the record does. Where none does, the two records are read back
from the archive and compared in one spelling: keys sorted, numbers without trailing zeros.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import duckdb
import pyarrow as pa

from pipelines.api import page
from pipelines.api.content import canonical
from pipelines.warehouse.archive import Archive
from pipelines.warehouse.database import append, quoted
from pipelines.warehouse.survey import before, staged
from pipelines.warehouse.tables import AT, IDX, LINEAGE, TIMES

NUMBERS = ("BIGINT", "DECIMAL", "HUGEINT")
# Taken from the tables once: each pass over a million rows costs 0.2 s, however few are wanted.
BEFORE = """
CREATE OR REPLACE TEMP TABLE {before} AS
SELECT m.reading AS _at, c.* FROM {current} c JOIN fold_matched m ON c.rowid = m.id
"""
CHILDREN_BEFORE = """
CREATE OR REPLACE TEMP TABLE {before} AS
SELECT p._at, c.* FROM {current} c JOIN {parent} p ON c.{key} = p.{key}
WHERE c._connection = $connection
"""
CHANGED = """
CREATE OR REPLACE TEMP TABLE fold_changed AS
SELECT id, reading, CASE WHEN reading IN ({restated}) THEN 'restated' ELSE 'changed' END AS why
FROM fold_matched WHERE reading IN (SELECT reading FROM fold_ats)
"""
MATCHED = "(SELECT reading FROM fold_matched)"
# A text that begins so may be JSON, which can be spelled in several ways.
SPELLED = r"'^[-0-9\[{]'"


@dataclass(frozen=True)
class Comparison:
    """A stage beside the tables; `counts` are, of each table, the columns of array lengths."""

    database: duckdb.DuckDBPyConnection
    archive: Archive
    stream: str
    connection: str
    key: str
    tables: Sequence[str]
    counts: Mapping[str, set[str]]

    def changed(self) -> None:
        """Make `fold_changed`: rows that say something else now, and why their version ends."""
        for table in self.tables:
            self._take(table)
        ats = {at for table in self.tables for at in self._surely(table)}
        ats |= self._otherwise(ats)
        self.database.execute("CREATE OR REPLACE TEMP TABLE fold_ats (reading BIGINT)")
        append(self.database, "fold_ats", pa.table({"reading": pa.array(sorted(ats), pa.int64())}))
        restated = " UNION ".join(filter(None, map(self._restated, self.tables)))
        self.database.execute(CHANGED.format(restated=restated or "SELECT NULL"))

    def _take(self, table: str) -> None:
        """Take what the staged records were until now out of a table."""
        names = {"before": before(table), "current": quoted("current", table)}
        if table == self.stream:
            self.database.execute(BEFORE.format(**names))
            return
        names |= {"parent": before(self.stream), "key": quoted(self.key)}
        self.database.execute(CHILDREN_BEFORE.format(**names), {"connection": self.connection})

    def _surely(self, table: str) -> list[int]:
        """Return the readings with a value in a column that differs, and is no other spelling."""
        differs = [_differs(name, kind) for name, kind in self._own(table).items()]
        if not differs:
            return []
        query = f"SELECT DISTINCT s._at {self._joined(table)} WHERE {' OR '.join(differs)}"
        return [at for (at,) in self.database.execute(query).fetchall()]

    def _joined(self, table: str) -> str:
        places = " AND ".join(f"c.{name} = s.{name}" for name in (AT, *self._places(table)))
        return f"FROM {staged(table)} s JOIN {before(table)} c ON {places}"

    def _otherwise(self, surely: set[int]) -> set[int]:
        """Return the other readings whose records, read back, say something else."""
        rows = self.database.execute(
            f"SELECT s._at, c._page, c._row, s._page, s._row {self._joined(self.stream)}"
        ).fetchall()
        texts = Texts(self.archive)
        unsure = [row for row in rows if row[0] not in surely]
        older = texts.of([(page, row) for _, page, row, _, _ in unsure])
        newer = texts.of([(page, row) for _, _, _, page, row in unsure])
        return {at for (at, *_), old, new in zip(unsure, older, newer, strict=True) if old != new}

    def _restated(self, table: str) -> str:
        """Return a query for the readings with another number in a table; empty: it has none."""
        own = self._own(table)
        numbers = [quoted(name) for name, kind in own.items() if kind.startswith(NUMBERS)]
        numbers = [name for name in numbers if name.strip('"') not in self.counts.get(table, ())]
        if not numbers:
            return ""
        names = ", ".join([AT, *self._places(table), *numbers])
        some = f"coalesce({', '.join(f'{name}::VARCHAR' for name in numbers)}) IS NOT NULL"
        old = f"SELECT {names} FROM {before(table)} WHERE {some}"
        new = f"SELECT {names} FROM {staged(table)} WHERE {some} AND {AT} IN {MATCHED}"
        return f"SELECT {AT} FROM (({new} EXCEPT {old}) UNION ALL ({old} EXCEPT {new}))"

    def _own(self, table: str) -> dict[str, str]:
        """Return the columns that records give, and their types."""
        rows = self.database.execute(f"DESCRIBE {staged(table)}").fetchall()
        ours = {*LINEAGE, *TIMES, AT, self.key, *self._places(table)}
        return {name: kind for name, kind, *_ in rows if name not in ours}

    def _places(self, table: str) -> list[str]:
        if table == self.stream:
            return []
        rows = self.database.execute(f"DESCRIBE {staged(table)}").fetchall()
        names = [name for name, *_ in rows]
        after = names[names.index(self.key) + 1 :]
        return [name for name, place in zip(after, _idx(), strict=False) if name == place]


def _idx() -> Iterator[str]:
    yield IDX
    depth = 2
    while True:
        yield f"{IDX}_{depth}"
        depth += 1


def _differs(name: str, kind: str) -> str:
    old, new = f"c.{quoted(name)}", f"s.{quoted(name)}"
    if kind != "VARCHAR":
        return f"{old} <> {new}"
    return f"({old} <> {new} AND NOT regexp_matches({old}, {SPELLED}))"


@dataclass(frozen=True)
class Texts:
    """Records read back from the archive."""

    archive: Archive

    def of(self, places: Sequence[tuple[str, int]]) -> list[bytes]:
        """Return what tells records apart by all that they say, each page opened once."""
        by_page = defaultdict[str, list[int]](list)
        for number, (name, _row) in enumerate(places):
            by_page[name].append(number)
        found = [b""] * len(places)
        for name, numbers in by_page.items():
            texts = page.records(self.archive.body(name))
            for number in numbers:
                found[number] = sha256(canonical(bytes(texts[places[number][1]]))).digest()
        return found
