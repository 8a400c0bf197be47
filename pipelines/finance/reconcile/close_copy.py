"""The copy of a closed month: writes it, and proves that it is what was signed off.

Not here: how its rows are compared with those of today (closed_rows).
"""

import hashlib
import json
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.core import stop
from pipelines.core.errors import ArchiveDamaged, NewerFormat, StorageFailed
from pipelines.core.files import durable_rename, private_folder, remove, sync_file
from pipelines.core.text import printable, quote_text
from pipelines.metadata.tables import Close
from pipelines.warehouse.memory_limit import is_memory_refused

FORMAT: Final = 2  # of a manifest; one that does not say a number has format 1
SIGNED_FILE: Final = 0o400
MANIFEST: Final = "manifest.json"
MAPPING: Final = "mapping.toml"
# Table -> its month; corrections are those that the month takes.
COPIED: Final = {
    "temp.used": "month",
    "temp.billed": "month",
    "reconciliation.summary": "month",
    "reconciliation.breaks": "month",
    "reconciliation.rollforward": "month",
    "reconciliation.corrections": "posted_to",
}
STATED: Final = ("number", "preparer", "reviewer", "note", "version")
# In groups of 16 MB: with larger ones, DuckDB exceeds memory_limit.
COPY: Final = """
COPY (SELECT rows.* FROM {table} AS rows WHERE rows.{column} = DATE '{month}')
TO {file} (FORMAT parquet, ROW_GROUP_SIZE_BYTES '16MB')
"""
AS_OF: Final = "SELECT basis.as_of::VARCHAR FROM reconciliation.basis AS basis"
SCANS: Final = """
SELECT concat(lists.connection, '/', lists.stream) AS list, lists.last_scan_id
FROM meta.freshness AS lists
WHERE lists.stream IN ('partners', 'usage', 'billing')
ORDER BY list
"""


def write_copy(db: duckdb.DuckDBPyConnection, close: Close, folder: Path, mapping: bytes) -> str:
    """Copy a month of a published version into a new folder; return the manifest's SHA-256.

    The folder is whole or not there. Raises StorageFailed.
    """
    part = folder.with_name(f".{folder.name}.part")
    try:
        remove(part)
        private_folder(part)
        _copy_tables(db, close, part)
        (part / MAPPING).write_bytes(mapping)
        manifest = _manifest(db, close, part)
        (part / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
        digest = _sha256(part / MANIFEST)
        for file in part.iterdir():
            file.chmod(SIGNED_FILE)
            sync_file(file)
        sync_file(part)
        durable_rename(part, folder)
        # The folders of the month and of all closes may be new, so their own entries are synced.
        for parent in folder.parents[1:3]:
            sync_file(parent)
    except (duckdb.Error, OSError) as error:
        if is_memory_refused(error):
            raise  # which `open_session` explains
        raise StorageFailed(
            f"The copy {folder} cannot be written: {printable(error)}. {close.month:%Y-%m} is not "
            "closed. Analysts still see the published version.",
            "Make room or correct the permissions, then close the month again.",
        ) from error
    finally:
        with suppress(StorageFailed):
            remove(part)
    return digest


def _copy_tables(db: duckdb.DuckDBPyConnection, close: Close, folder: Path) -> None:
    """Write the rows of a month, a file for each table."""
    # Rows keep no order in a copy: to keep one, DuckDB needs more memory.
    db.execute("SET preserve_insertion_order = false")
    for table, column in COPIED.items():
        stop.raise_if_requested()
        file = folder / f"{table.partition('.')[2]}.parquet"
        copy = COPY.format(
            table=table, column=column, month=close.month, file=quote_text(str(file))
        )
        db.execute(copy)


def _manifest(db: duckdb.DuckDBPyConnection, close: Close, folder: Path) -> dict[str, Any]:
    """Return what is signed: who closed the month, what it rests on, and a digest of each file."""
    ((as_of,),) = db.execute(AS_OF).fetchall()
    return {
        "format": FORMAT,
        **_stated(close),
        "month": f"{close.month:%Y-%m}",
        "closed_at": close.closed_at.isoformat(),
        "as_of": as_of,
        "scans": dict(db.execute(SCANS).fetchall()),
        "sha256": {file.name: _sha256(file) for file in sorted(folder.iterdir())},
    }


def _stated(close: Close) -> dict[str, Any]:
    return {name: getattr(close, name) for name in STATED}


def adopt_copy(folder: Path, close: Close) -> bool:
    """Give a close the copy in a folder if it was written for this close; return whether it was.

    Raises ArchiveDamaged for one that is not whole, NewerFormat.
    """
    digest = _sha256(folder / MANIFEST)
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        # Of another close, which nobody knows.
        return False
    _require_known_format(folder, manifest)
    wanted = _stated(close)
    wanted["month"] = f"{close.month:%Y-%m}"
    if any(manifest.get(name) != value for name, value in wanted.items()):
        return False
    close.closed_at = datetime.fromisoformat(manifest["closed_at"])
    close.manifest_sha256 = digest
    require_intact(folder, close)
    return True


def require_intact(folder: Path, close: Close) -> None:
    """Raise ArchiveDamaged if the copy of a month is not what was signed off, or NewerFormat."""
    digests = {MANIFEST: close.manifest_sha256}
    if _sha256(folder / MANIFEST) == close.manifest_sha256:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        _require_known_format(folder, manifest)
        digests = manifest["sha256"]
    for name, digest in digests.items():
        if _sha256(folder / name) != digest:
            raise ArchiveDamaged(
                f"The copy of {close.month:%Y-%m} is damaged: {folder / name} is missing, was "
                "changed after the month was closed, or cannot be read.",
                "Restore it from a backup, then run `partner-sync reconcile`.",
            )


def _require_known_format(folder: Path, manifest: dict[str, Any]) -> None:
    number = manifest.get("format", 1)
    if number > FORMAT:
        raise NewerFormat(
            f"The copy {folder} has format {number}, and this partner-sync reads formats up to "
            f"{FORMAT}: a newer one wrote it. The month is not compared with it; the copy was not "
            "changed.",
            "Install the newer partner-sync.",
        )


def _sha256(file: Path) -> str:
    """Return the digest of a file; empty where it is missing or cannot be read."""
    try:
        with file.open("rb") as source:
            return hashlib.file_digest(source, "sha256").hexdigest()
    except OSError:
        return ""
