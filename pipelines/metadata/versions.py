"""Rows of `versions`. The files and the symlink decide; rows are reconciled with them."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from pipelines.metadata.tables import VersionRow


class VersionStatus(StrEnum):
    """State of a version: PUBLISHED ones were published at some time and have a file."""

    BUILDING = "building"
    PUBLISHED = "published"
    DELETED = "deleted"


@dataclass(frozen=True)
class VersionFiles:
    """What the disk says: numbers of finished files, and the one that the symlink names."""

    finished: AbstractSet[int]
    linked: int | None


def next_number(session: Session, files: AbstractSet[int] = frozenset()) -> int:
    """Return the highest number ever used plus one, by rows and files."""
    highest = session.scalar(select(func.max(VersionRow.number))) or 0
    return max(highest, *files, 0) + 1


def start_version(session: Session, number: int, base: int | None, now: datetime) -> VersionRow:
    """Add the row of a version that is being built."""
    row = VersionRow(
        number=number,
        status=VersionStatus.BUILDING,
        base=base,
        file=version_file(number),
        created_at=now,
    )
    session.add(row)
    session.flush()
    return row


def version_file(number: int) -> str:
    """Return the path of a version's file below the home."""
    return f"versions/v{number:08d}.duckdb"


def publish_version(session: Session, number: int, sha256: str | None, now: datetime) -> VersionRow:
    """Mark a version as published; its file and the symlink are in place."""
    row = session.get_one(VersionRow, number)
    row.status, row.sha256, row.published_at = VersionStatus.PUBLISHED, sha256, now
    session.flush()
    return row


def delete_version(session: Session, number: int) -> VersionRow:
    """Mark a version as deleted; its file is gone, or goes at the next reconciliation."""
    row = session.get_one(VersionRow, number)
    row.status = VersionStatus.DELETED
    session.flush()
    return row


def list_versions(session: Session) -> list[VersionRow]:
    """Return every version, oldest first."""
    return list(session.scalars(select(VersionRow).order_by(VersionRow.number)))


def reconcile_versions(session: Session, files: VersionFiles, now: datetime) -> list[int]:
    """Bring the rows in line with the files; return the numbers of files to delete.

    The version that the symlink names is published, with or without a row. A file without a row is
    kept: the metadata database may be older than the files. The file of a build that ended before
    the symlink was moved is deleted, like that of a deleted version. A row without a file is
    deleted. The caller holds the lock `build`.
    """
    rows = {row.number: row for row in list_versions(session)}
    for number in sorted(files.finished - rows.keys()):
        rows[number] = start_version(session, number, None, now)
        rows[number].status = VersionStatus.PUBLISHED
        rows[number].note = "Found on disk without a row."
    for number, row in rows.items():
        if number not in files.finished:
            row.status = VersionStatus.DELETED
        elif number == files.linked:
            row.status = VersionStatus.PUBLISHED
            row.published_at = row.published_at or now
        elif row.status == VersionStatus.BUILDING:
            row.status = VersionStatus.DELETED
    session.flush()
    deleted = {number for number, row in rows.items() if row.status == VersionStatus.DELETED}
    return sorted(deleted & files.finished)
