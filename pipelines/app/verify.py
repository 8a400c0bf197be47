"""Compares every scan file and the published version with the digests taken when written."""

from dataclasses import dataclass

from sqlalchemy import select

from pipelines.app.session import AppSession
from pipelines.core.errors import PartnerSyncError
from pipelines.metadata.tables import Scan
from pipelines.publish.versions import require_unchanged


@dataclass(frozen=True)
class Verified:
    """How many files were compared, and what is wrong with which."""

    files: int
    damaged: tuple[PartnerSyncError, ...]


def verify_files(session: AppSession) -> Verified:
    """Read every file again. Raises StorageFailed where the metadata database fails."""
    with session.metadata.transaction() as db:
        sealed = select(Scan).where(Scan.sha256.is_not(None)).order_by(Scan.started_at)
        scans = list(db.scalars(sealed))
    published = session.warehouse.published()
    damaged: list[PartnerSyncError] = []
    for scan in scans:
        try:
            session.archive.open_sealed(scan).verify()
        except PartnerSyncError as error:
            damaged.append(error)
    if published is not None:
        try:
            require_unchanged(session.metadata, published)
            session.warehouse.open(published.number).close()
        except PartnerSyncError as error:
            damaged.append(error)
    return Verified(len(scans) + (published is not None), tuple(damaged))
