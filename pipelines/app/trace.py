"""Follows one record of the published version back to the bytes that the service sent."""

from collections.abc import Collection
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.app.session import AppSession
from pipelines.archive.records import digests_of, parse_page
from pipelines.archive.scan_file import SealedScan, scan_file
from pipelines.checks.context import ListName
from pipelines.core.errors import (
    ArchiveDamaged,
    ConfigurationError,
    PartnerSyncError,
    ScanNotFound,
    UnexpectedAnswer,
)
from pipelines.core.text import printable, quote_identifier
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan

Row = dict[str, Any]
Place = tuple[int, int]
"""Page and row of a record in its scan file."""
VERSIONS: Final = """
SELECT
    history._valid_from AS valid_from, history._valid_to AS valid_to,
    history._end_reason AS end_reason, history._scan_id AS scan_id, history._page AS page,
    history._row AS row, format('{{:016x}}', history._digest) AS digest
FROM history.{table} AS history
WHERE history._connection = $connection AND history._key = $key
"""
QUARANTINED: Final = """
SELECT records.reason, records.scan_id, records.page, records.row, records.raw AS text
FROM quarantine.records AS records
WHERE records.connection = $connection AND records.stream = $stream AND records.key = $key
"""
WITH_REQUESTS: Final = """
SELECT
    found.*, requests.requested_offset AS offset, requests.requested_limit AS limit,
    requests.sent_at, requests.received_at, requests.status, requests.request_id
FROM ({found}) AS found
LEFT JOIN meta.requests AS requests
    ON requests.scan_id = found.scan_id AND requests.page = found.page
ORDER BY ALL
"""
LOADS: Final = """
SELECT loads.scan_id, loads.valid_time, loads.key
FROM meta.loads AS loads
WHERE loads.connection = $connection AND loads.stream = $stream
ORDER BY loads.valid_time
"""
SOME_KEYS: Final = """
SELECT DISTINCT history._key
FROM history.{table} AS history
WHERE history._connection = $connection
ORDER BY history._key
LIMIT 3
"""
LATER_COPY: Final = (
    "Proven: the service sent the same values again in other bytes. Scan {}, page {}, row {} has "
    "the digest of the row; this is the record that was sent first."
)
UNPROVEN: Final = "The row is as it was loaded, but cannot be compared with what the service sent."
RESTORE: Final = "Restore the scan file from a backup."


def trace(session: AppSession, connection: str, stream: str, key: str) -> Row:
    """Return every version of a record, and its records in quarantine, each with its evidence.

    Raises ConfigurationError for a list or a key that there is not, ScanNotFound for a list that is
    not published, VersionNotFound, StorageFailed.
    """
    about, version = ListName(connection, stream), session.warehouse.require_published()
    with closing(session.warehouse.open(version.number)) as db:
        tracer = _Tracer(session, db, about, key)
        loads = tracer.select(LOADS)
        if not loads:
            raise _not_loaded(session, about)
        found = {
            name: [tracer.with_evidence(row) for row in tracer.select(query, with_requests=True)]
            for name, query in (("versions", VERSIONS), ("quarantine", QUARANTINED))
        }
        if not any(found.values()):
            raise tracer.key_not_found(loads[-1]["key"])
    return {"version": version.number, **about._asdict(), "key": key, **found}


def _not_loaded(session: AppSession, about: ListName) -> PartnerSyncError:
    session.lists([about.connection], [about.stream])  # raises for one that is not configured
    return ScanNotFound(
        f"No scan of {about} is published, so there is no record to trace.",
        "Run `partner-sync sync`, then `partner-sync status`.",
    )


@dataclass(frozen=True)
class _Tracer:
    """What one record of the published version is followed with."""

    session: AppSession
    db: duckdb.DuckDBPyConnection
    about: ListName
    key: str

    def select(self, query: str, *, with_requests: bool = False) -> list[Row]:
        """Return the rows of a query by column."""
        values = {**self.about._asdict(), "key": self.key}
        bound = {name: value for name, value in values.items() if f"${name}" in query}
        query = WITH_REQUESTS.format(found=query) if with_requests else query
        found = self.db.execute(query.format(table=quote_identifier(self.about.stream)), bound)
        names = [name for name, *_ in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def with_evidence(self, found: Row) -> Row:
        """Return a row with the raw record, and whether it is proven that the row was made of it.

        Bytes of a record that are not UTF-8 are escaped as Python's `surrogateescape` does it.
        """
        file, raw, remedy = self._file(found["scan_id"]), None, ""
        try:
            require_file(self.session, file, found["scan_id"])
            raw = _raw_record(file, found["page"], found["row"])
            message = self._proof(found, raw)
        except ArchiveDamaged as error:
            message, remedy = f"Not proven. {error} {UNPROVEN}", error.remedy
        text = None if raw is None else raw.decode(errors="surrogateescape")
        evidence = {"proven": not remedy, "message": message, "remedy": remedy, "raw": text}
        return found | {"file": str(file)} | evidence

    def _file(self, scan_id: str) -> Path:
        return self.session.archive.folder / scan_file(*self.about, scan_id)

    def _proof(self, found: Row, raw: bytes) -> str:
        """Return why a row was made of a raw record. Raises ArchiveDamaged if it was not."""
        if "text" in found:
            if raw.decode(errors="replace") == found["text"]:
                return "Proven: quarantine has the record as it is in the scan file."
            raise _another_record(self._file(found["scan_id"]))
        digest = f"{int(digests_of([raw])[0]):016x}"
        # In a list without a primary key, the i-th of equal records has a `_digest` of its own.
        if digest == found["digest"] or self.key.startswith(f"{digest}#"):
            return "Proven: the record in the scan file has the digest of the row."
        return self._proof_of_later_copy(found)

    def _proof_of_later_copy(self, found: Row) -> str:
        """Return which scan has the bytes of a row that was sent again, with the same values."""
        digest, begin, end = int(found["digest"], 16), found["valid_from"], found["valid_to"]
        for load in self.select(LOADS):
            time = load["valid_time"]
            is_later = begin < time and (end is None or time < end)
            for page in SealedScan.open(self._file(load["scan_id"])).pages() if is_later else ():
                digests = digests_of(page.records()).tolist()
                if digest in digests:
                    return LATER_COPY.format(load["scan_id"], page.page, digests.index(digest))
        raise _another_record(self._file(found["scan_id"]))

    def key_not_found(self, primary_key: str | None) -> ConfigurationError:
        """Return the error for a key that the list never had."""
        keys = ", ".join(f"`{printable(row['_key'])}`" for row in self.select(SOME_KEYS))
        named = f"values of `{primary_key}`" if primary_key else "digests of their content"
        link = self.session.home.link
        return ConfigurationError(
            f"{self.about} has no record with the key `{printable(self.key)}`, neither now nor "
            f"before nor in quarantine. Keys of this list are {named}"
            f"{f', such as {keys}' if keys else ''}.",
            f'Look the key up: duckdb -readonly {link} "SELECT _key FROM '
            f'history.{self.about.stream}".',
        )


def require_file(session: AppSession, file: Path, scan_id: str) -> None:
    """Raise ArchiveDamaged, which says why, if the file of a scan does not exist."""
    if file.exists():
        return
    with session.metadata.transaction() as db:
        scan = db.get(Scan, scan_id)
    is_pruned = scan is not None and scan.status == ScanStatus.PRUNED
    raise ArchiveDamaged(
        f"Scan file {file} {'was pruned' if is_pruned else 'is missing'}.", RESTORE
    )


def raw_records(file: Path, places: Collection[Place]) -> dict[Place, bytes]:
    """Return, of some records, those that a scan file has, as received. Raises ArchiveDamaged."""
    pages, found = {page for page, _row in places}, dict[Place, bytes]()
    for exchange in SealedScan.open(file).exchanges():
        if exchange.page in pages:
            with suppress(UnexpectedAnswer):  # the file is another one
                records = enumerate(parse_page(exchange.body or b"").records)
                rows = (((exchange.page, row), raw) for row, raw in records)
                found |= {place: raw for place, raw in rows if place in places}
    return found


def _raw_record(file: Path, page: int, row: int) -> bytes:
    """Return a record as received. Raises ArchiveDamaged if the file does not have it."""
    with suppress(KeyError):
        return raw_records(file, {(page, row)})[page, row]
    raise ArchiveDamaged(f"Scan file {file} has no row {row} on page {page}.", RESTORE)


def _another_record(file: Path) -> ArchiveDamaged:
    return ArchiveDamaged(f"Scan file {file} has another record in its place.", RESTORE)
