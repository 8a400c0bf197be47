"""Rows of `versions`. `publish.versions` keeps them in step with files and symlink."""

from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.metadata.tables import VersionRow


class VersionStatus(StrEnum):
    """State of a version: PUBLISHED ones were published at some time and have a file."""

    BUILDING = "building"
    PUBLISHED = "published"
    DELETED = "deleted"


def list_versions(session: Session) -> list[VersionRow]:
    """Return every version, oldest first."""
    return list(session.scalars(select(VersionRow).order_by(VersionRow.number)))
