"""The frozen copy of a closed month: Parquet beside the archive, and a manifest of hashes.

A copy appears whole or not at all and is never written again: archive/closes/<month>/<number>. Its
source pages are pinned, so that retention keeps them. Not here: what has changed since
(corrections), who may close (run.closing).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from hashlib import file_digest, sha256
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa
from pyarrow import parquet

from pipelines.errors import StorageFailed
from pipelines.state.closes import Close, Kind
from pipelines.warehouse.archive import Archive
from pipelines.warehouse.database import exists

BATCH = 20_000  # rows in memory at a time
MANIFEST = "manifest.json"
# The two sides are every record of the month; what was said of it is as it was published.
SIDES = {"usage": "used", "billing": "billed"}
TABLES = ("summary", "breaks", "partner_rollforward")
PAGES = """
SELECT DISTINCT page FROM (SELECT page, month FROM used UNION ALL SELECT page, month FROM billed)
WHERE month = {month} AND page IS NOT NULL ORDER BY page
"""
# One number for all records of a month: as many equal hashes do not come about by chance.
PRINTS = """
SELECT month, count(*) || ' ' || sum(md5_number_lower(concat_ws(chr(31), side,
           coalesce(connection, chr(1)), coalesce(id, chr(1)), coalesce(partner, chr(1)),
           coalesce(currency, chr(1)), coalesce(quantity::VARCHAR, chr(1)),
           coalesce(amount::VARCHAR, chr(1)))))
FROM (
    SELECT 'usage' AS side, month, connection, id, partner, currency, quantity, amount FROM used
    UNION ALL
    SELECT 'billing', month, connection, id, partner, currency, quantity, amount FROM billed
) WHERE list_contains($months::DATE[], month) GROUP BY month
"""
READINGS = """
SELECT connection, stream, manifest, grade, rows, ended_at FROM meta.freshness ORDER BY ALL
"""


class Part(msgspec.Struct, frozen=True):
    """One file of a copy."""

    sha256: str
    size: int
    rows: int | None = None


class Reading(msgspec.Struct, frozen=True):
    """A list as it was read last before the month was closed."""

    connection: str
    stream: str
    manifest: str
    grade: str
    rows: int
    ended_at: datetime


class Frozen(msgspec.Struct, frozen=True):
    """The manifest of a copy; `mapping` is the SHA-256 of mapping.toml, `pages` of every source.

    `print` is what tells at once that every record is as it was.
    """

    month: date
    number: int
    preparer: str
    reviewer: str
    closed_at: datetime
    note: str
    version: int
    mapping: str
    print: str
    readings: tuple[Reading, ...]
    files: Mapping[str, Part]
    pages: tuple[str, ...]

    @property
    def records(self) -> int:
        """How many records of both sides are in it."""
        return sum(self.files[f"{each}.parquet"].rows or 0 for each in SIDES.values())


@dataclass(frozen=True)
class Head:
    """What a person says when a month is closed, and on which mapping (its file's text)."""

    month: date
    preparer: str
    reviewer: str
    at: datetime
    note: str
    mapping: bytes


@dataclass(frozen=True)
class Copies:
    """The frozen copies of one archive."""

    archive: Archive

    @staticmethod
    def folder(month: date, number: int) -> str:
        """Return where in the archive a copy lies."""
        return f"closes/{month:%Y-%m}/{number:03}"

    def write(self, database: duckdb.DuckDBPyConnection, head: Head, number: int) -> Close:
        """Freeze a month of a published version; return what is to be recorded of it.

        The database has `used` and `billed` (matching) beside its tables. What a kill left of an
        earlier try goes. Raises StorageFailed where the disk does not take it.
        """
        store, folder = self.archive.store, self.folder(head.month, number)
        try:
            with store.making(folder, MANIFEST) as making:
                frozen = _written(database, head, number, making)
                digest = _digest(making / MANIFEST)
            self._pin(head.month, frozen.pages)
        except OSError as error:
            raise StorageFailed(
                f"{store.where(folder)} cannot be written: {error.strerror}. {head.month:%Y-%m} is "
                "not closed: make room, then close it again."
            ) from None
        said = (head.preparer, head.reviewer, head.at, head.note)
        return Close(head.month, number, Kind.CLOSE, *said, digest, frozen.records)

    def sweep(self, month: date, recorded: set[int]) -> None:
        """Remove copies of a month that a kill left before the ledger knew of them."""
        store, folder = self.archive.store, f"closes/{month:%Y-%m}"
        known = {f"{number:03}" for number in recorded}
        for name in store.folders(folder):
            if name not in known:
                store.drop(f"{folder}/{name}")

    def read(self, close: Close) -> Frozen:
        """Return the manifest of a copy."""
        return msgspec.json.decode(self.archive.store.get(_at(close, MANIFEST)), type=Frozen)

    def mapping(self, close: Close) -> str:
        """Return the mapping that a month was signed off on."""
        return self.archive.store.get(_at(close, "mapping.toml")).decode()

    def schema(self, close: Close, table: str) -> pa.Schema:
        """Return the types of a table of a copy."""
        with self.archive.store.file(_at(close, f"{table}.parquet")) as file:
            return parquet.read_schema(file)

    def batches(self, close: Close, table: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a table of a copy."""
        store = self.archive.store
        with (
            store.file(_at(close, f"{table}.parquet")) as file,
            parquet.ParquetFile(file) as rows,
        ):
            yield from rows.iter_batches(BATCH)

    def faults(self, close: Close) -> Iterator[str]:
        """Yield what of a copy is not as it was signed off; erased records are accepted."""
        found = self._digest(close, MANIFEST)
        if found is None:
            yield f"{MANIFEST} is missing"
            return
        if found != close.sha256:
            yield f"{MANIFEST} is not what the ledger says that was signed off"
            return
        frozen = self.read(close)
        for name, part in frozen.files.items():
            found = self._digest(close, name)
            if found is None:
                yield f"{name} is missing"
            elif found != part.sha256:
                yield f"{name} was changed since it was signed off"
        there = self.archive.pages().keys()
        for page in frozen.pages:
            if self.archive.now(page) not in there:
                yield f"its source page {page} is missing in the archive"

    def pinned(self) -> Iterator[str]:
        """Yield the pages that closed months pin: each file of archive/pins is a list of them."""
        for name in self.archive.store.sizes("pins"):
            yield from msgspec.json.decode(self.archive.store.get(name), type=list[str])

    def _digest(self, close: Close, name: str) -> str | None:
        """Return the SHA-256 of a file of a copy, None where it is missing."""
        try:
            with self.archive.store.file(_at(close, name)) as file:
                return _digest(file)
        except FileNotFoundError:
            return None

    def _pin(self, month: date, pages: tuple[str, ...]) -> None:
        """Let retention keep the source pages, of earlier copies of the month too."""
        store, name = self.archive.store, f"pins/{month:%Y-%m}.json"
        before = msgspec.json.decode(store.get(name), type=list[str]) if store.has(name) else []
        store.put(name, msgspec.json.encode(sorted({*before, *pages})))


def _at(close: Close, name: str) -> str:
    return f"{Copies.folder(close.month, close.number)}/{name}"


def prints(database: duckdb.DuckDBPyConnection, months: Sequence[date]) -> dict[date, str]:
    """Return of each month what its records are, all in one; a month without any is not there."""
    return dict(database.execute(PRINTS, {"months": list(months)}).fetchall())


def _written(database: duckdb.DuckDBPyConnection, head: Head, number: int, folder: Path) -> Frozen:
    month = f"DATE '{head.month}'"
    queries = {each: f"SELECT * FROM {each} WHERE month = {month}" for each in SIDES.values()}
    for each in TABLES:
        if exists(database, "reconciliation", each):
            queries[each] = f"SELECT * FROM reconciliation.{each} WHERE month = {month}"
    if exists(database, "reconciliation", "corrections"):
        queries["corrections"] = f"FROM reconciliation.corrections WHERE posted_to = {month}"
    files = {}
    for name, query in queries.items():
        file = folder / f"{name}.parquet"
        files[file.name] = _part(file, _rows(database, query, file))
    given = folder / "mapping.toml"
    given.write_bytes(head.mapping)
    files[given.name] = _part(given)
    readings = database.execute(READINGS).fetchall()
    versions = database.execute("SELECT max(version) FROM meta.freshness").fetchall()
    pages = database.execute(PAGES.format(month=month)).fetchall()
    frozen = Frozen(
        month=head.month,
        number=number,
        preparer=head.preparer,
        reviewer=head.reviewer,
        closed_at=head.at,
        note=head.note,
        version=versions[0][0],
        mapping=sha256(head.mapping).hexdigest(),
        print=prints(database, [head.month])[head.month],
        readings=tuple(Reading(*row) for row in readings),
        files=files,
        pages=tuple(page for (page,) in pages),
    )
    content = msgspec.json.format(msgspec.json.encode(frozen), indent=1)
    (folder / MANIFEST).write_bytes(content)
    return frozen


def _rows(database: duckdb.DuckDBPyConnection, query: str, file: Path) -> int:
    """Write a query's rows, each type as it is; return how many."""
    rows = 0
    reader = database.sql(query).to_arrow_reader(BATCH)
    with parquet.ParquetWriter(file, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _part(file: Path, rows: int | None = None) -> Part:
    return Part(_digest(file), file.stat().st_size, rows)


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
