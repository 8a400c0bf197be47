"""Follows one record of the published version back to the bytes that the service sent."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipelines.app.session import AppSession
from pipelines.archive.records import join_digests
from pipelines.archive.scan_file import SealedScan
from pipelines.checks.published import ListName
from pipelines.core.errors import ArchiveDamaged, ConfigurationError, PartnerSyncError
from pipelines.core.text import printable, quote_identifier
from pipelines.versions.raw_records import damaged, raw_records
from pipelines.warehouse.duckdb_file import Row, fetch_rows

# Formatted by `str.format`, so the braces that DuckDB's `format` reads are doubled.
VERSIONS: Final = """
WITH found AS (
    SELECT
        history._valid_from AS valid_from, history._valid_to AS valid_to,
        history._end_reason AS end_reason, history._scan_id AS scan_id, history._page AS page,
        history._row AS row, format('{{:016x}}', history._digest) AS digest
    FROM history.{table} AS history
    WHERE history._connection = $connection AND history._key = $key
)
"""
QUARANTINED: Final = """
WITH found AS (
    SELECT records.reason, records.scan_id, records.page, records.row, records.raw AS text
    FROM quarantine.records AS records
    WHERE records.connection = $connection AND records.stream = $stream AND records.key = $key
)
"""
WITH_REQUESTS: Final = """
SELECT
    found.*, requests.requested_offset AS offset, requests.requested_limit AS limit,
    requests.sent_at, requests.received_at, requests.status, requests.request_id
FROM found
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
UNPROVEN: Final = (
    "The row is unchanged since its load, but cannot be compared with what the service sent."
)


def trace(session: AppSession, connection: str, stream: str, key: str) -> Row:
    """Return every version of a record, and its records in quarantine, each with its evidence.

    Raises ConfigurationError for a list or a key that there is not, PartnerSyncError where nothing
    is published.
    """
    version = session.warehouse.require_published()
    table = quote_identifier(stream)
    of_list = {"connection": connection, "stream": stream}
    of_key = {"connection": connection, "key": key}
    with session.warehouse.open(version.number) as db:
        loads = fetch_rows(db, LOADS, of_list)
        if not loads:
            # It raises for a list that is not configured, and names those that are.
            session.lists([connection], [stream])
            raise PartnerSyncError(
                f"No scan of {connection}/{stream} is published. There is no record to trace.",
                "Run `partner-sync sync`, then `partner-sync status`.",
            )
        record = _Record(session, ListName(connection, stream), key, loads)
        versions = fetch_rows(db, VERSIONS.format(table=table) + WITH_REQUESTS, of_key)
        quarantined = fetch_rows(db, QUARANTINED + WITH_REQUESTS, {**of_list, "key": key})
        if not versions and not quarantined:
            known = fetch_rows(db, SOME_KEYS.format(table=table), {"connection": connection})
            raise record.key_not_found([row["_key"] for row in known])
    for row in (*versions, *quarantined):
        row.update(record.evidence(row))
    return {
        "version": version.number,
        "connection": connection,
        "stream": stream,
        "key": key,
        "versions": versions,
        "quarantine": quarantined,
    }


@dataclass(frozen=True)
class _Record:
    """A record that is followed, and the loads of its list."""

    session: AppSession
    list_name: ListName
    key: str
    loads: list[Row]

    def evidence(self, row: Row) -> Row:
        """Return the raw record of a row, and whether it is proven that the row was made of it.

        Bytes of a record that are not UTF-8 are escaped as Python's `surrogateescape` does it.
        """
        file = self._file(row["scan_id"])
        scan = (*self.list_name, row["scan_id"])
        place = (row["page"], row["row"])
        raw = None
        remedy = ""
        try:
            raw = raw_records(self.session, scan, {place}).get(place)
            if raw is None:
                raise damaged(file, f"has no row {row['row']} on page {row['page']}")
            message = self._proof(row, raw)
        except ArchiveDamaged as error:
            message = f"Not proven. {error} {UNPROVEN}"
            remedy = error.remedy
        return {
            "file": str(file),
            "proven": not remedy,
            "message": message,
            "remedy": remedy,
            "raw": None if raw is None else raw.decode(errors="surrogateescape"),
        }

    def _file(self, scan_id: str) -> Path:
        return self.session.archive.file(*self.list_name, scan_id)

    def _proof(self, row: Row, raw: bytes) -> str:
        """Return why a row was made of a raw record. Raises ArchiveDamaged if it was not."""
        if "text" in row:
            proof = self._proof_in_quarantine(row, raw)
        else:
            proof = self._proof_in_history(row, raw)
        if proof is None:
            raise damaged(self._file(row["scan_id"]), "has another record in its place")
        return proof

    def _proof_in_quarantine(self, row: Row, raw: bytes) -> str | None:
        if raw.decode(errors="replace") == row["text"]:
            return "Proven: quarantine has the record as it is in the scan file."
        return None

    def _proof_in_history(self, row: Row, raw: bytes) -> str | None:
        digest = join_digests([raw]).hex()
        # In a list without a primary key, the i-th of equal records has a `_digest` of its own.
        if digest == row["digest"] or self.key.startswith(f"{digest}#"):
            return "Proven: the record in the scan file has the digest of the row."
        return self._later_copy(row)

    def _later_copy(self, row: Row) -> str | None:
        """Return which scan has the bytes of a row that was sent again, with the same values."""
        digest = int(row["digest"], 16)
        for load in self.loads:
            if load["valid_time"] <= row["valid_from"]:
                continue
            if row["valid_to"] is not None and load["valid_time"] >= row["valid_to"]:
                continue
            for page in SealedScan.open(self._file(load["scan_id"])).pages():
                digests = page.digests().tolist()
                if digest in digests:
                    return LATER_COPY.format(load["scan_id"], page.page, digests.index(digest))
        return None

    def key_not_found(self, some_keys: list[str]) -> ConfigurationError:
        """Return the error for a key that the list never had."""
        name = self.loads[-1]["key"]
        kind = f"values of `{name}`" if name else "digests of their content"
        examples = ""
        if some_keys:
            examples = f", such as {', '.join(f'`{printable(key)}`' for key in some_keys)}"
        link = shlex.quote(str(self.session.home.link))
        return ConfigurationError(
            f"{self.list_name} has no record with the key `{printable(self.key)}`, neither now nor "
            f"before nor in quarantine. Keys of this list are {kind}{examples}.",
            f'Look the key up: duckdb -readonly {link} "SELECT _key FROM '
            f'history.{self.list_name.stream}".',
        )
