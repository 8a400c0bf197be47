"""Versions of the warehouse: list, rebuild, roll back."""

from pipelines.app.progress import Progress
from pipelines.app.session import AppSession
from pipelines.core.errors import VersionNotFound
from pipelines.metadata.versions import list_versions as version_rows
from pipelines.publish import build, rollback


def list_versions(session: AppSession) -> list[dict[str, object]]:
    """Return the versions whose files exist, newest first."""
    published = session.warehouse.published()
    with session.metadata.transaction() as db:
        rows = {row.number: row for row in version_rows(db)}
    return [
        {
            "version": version.number,
            "published": published is not None and version.number == published.number,
            "bytes": version.path.stat().st_size,
            "created_at": rows[version.number].created_at if version.number in rows else None,
            "content": rows[version.number].note if version.number in rows else "",
        }
        for version in reversed(session.warehouse.versions())
    ]


def rebuild(session: AppSession, progress: Progress) -> build.BuildResult:
    """Build a version from the scan files alone and publish it."""
    return build.rebuild(session, progress.note)


def roll_back(
    session: AppSession, number: int | None, progress: Progress, *, person: str, reason: str
) -> str:
    """Publish an older version (None: the previous one) again; return what changed."""
    if number is None:
        number = _previous(session)
    version = rollback.rollback(session, number, person, reason, progress.note)
    return (
        f"Analysts now see version {version.number}. Scans that it does not contain are held: "
        "`partner-sync status` lists them, `partner-sync approve` loads one."
    )


def _previous(session: AppSession) -> int:
    published = session.warehouse.published()
    older = [
        version.number
        for version in session.warehouse.versions()
        if published is not None and version.number < published.number
    ]
    if not older:
        raise VersionNotFound(
            "There is no older version. Nothing was changed.",
            "Run `partner-sync versions list` to see which versions are kept.",
        )
    return max(older)
