"""Versions of the warehouse: list, rebuild, roll back; decide about scans that are held."""

from typing import Any

from pipelines.app.progress import Progress
from pipelines.app.session import AppSession
from pipelines.core.errors import ScanNotFound, VersionNotFound
from pipelines.metadata import scans
from pipelines.metadata.decisions import add_decision
from pipelines.metadata.versions import list_versions as version_rows
from pipelines.publish import build
from pipelines.publish.versions import rollback


def list_versions(session: AppSession) -> list[dict[str, Any]]:
    """Return the versions whose files exist, newest first."""
    published = session.warehouse.published()
    with session.metadata.transaction() as db:
        rows = {row.number: row for row in version_rows(db)}
    return [
        {
            "version": version.number,
            "published": version == published,
            "bytes": version.path.stat().st_size,
            "created_at": row and row.created_at,
            "content": row.note if row else "",
        }
        for version in reversed(session.warehouse.versions())
        for row in (rows.get(version.number),)
    ]


def build_version(session: AppSession, progress: Progress) -> build.BuildResult:
    """Publish a version of every scan that waits. Raises BuildFailed, LockHeld, StorageFailed."""
    return build.build(session, progress.note)


def rebuild(session: AppSession, progress: Progress) -> build.BuildResult:
    """Publish a version from the scan files alone. Raises as `build_version`."""
    return build.rebuild(session, progress.note)


def roll_back(session: AppSession, number: int | None, reason: str, progress: Progress) -> str:
    """Publish an older version (None: the previous one) again; return what changed."""
    published = session.warehouse.published()
    kept = [version.number for version in session.warehouse.versions()]
    older = [each for each in kept if published and each < published.number]
    if number is None and not older:
        raise VersionNotFound(
            "There is no older version. Nothing was changed.",
            "Run `partner-sync versions list` to see which versions are kept.",
        )
    target = max(older) if number is None else number
    decision = session.decision("rollback", str(target), reason)
    version = rollback(session, target, decision, progress.note)
    return (
        f"Analysts now see version {version.number}. Scans that it does not contain are held: "
        "`partner-sync status` lists them, `partner-sync approve` loads one."
    )


def decide_held_scan(
    session: AppSession, connection: str, stream: str, reason: str, *, reject: bool = False
) -> str:
    """Approve or reject the held scan of a list; return what was decided, as a sentence.

    The decision is about this scan only: a later scan passes the same guards.
    """
    session.lists([connection], [stream])
    status = scans.ScanStatus.REJECTED if reject else scans.ScanStatus.APPROVED
    about = (connection, stream)
    with session.metadata.transaction() as db:
        held = [each for each in scans.held_scans(db) if (each.connection, each.stream) == about]
        if not held:
            raise ScanNotFound(
                f"No scan of {connection}/{stream} is held. Nothing was changed.",
                "Run `partner-sync status` to see what waits for a decision.",
            )
        scan, why = held[-1], held[-1].reason
        add_decision(db, session.decision("reject" if reject else "approve", scan.scan_id, reason))
        scans.set_status(db, scan.scan_id, status, reason)
    began = f"{scan.started_at:%Y-%m-%d %H:%M}"
    return f"{status.capitalize()} the scan of {connection}/{stream} of {began} ({why})."
