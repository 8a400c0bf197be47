"""Here: which store a home has, and that a bucket belongs to one home and one database.

Not here: what stores do (store, cached).
"""

from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from pipelines.config.settings import Settings
from pipelines.config.values import PREFIX
from pipelines.core.clock import Clock
from pipelines.core.errors import ConfigurationError
from pipelines.files.store import IN_FOLDER, MARK, FileStore
from pipelines.metadata.engine import Metadata, new_id
from pipelines.metadata.tables import HomeRow

if TYPE_CHECKING:
    from pipelines.files.bucket import Bucket

HOME_ID: Final = "home.id"
# Settings that a home needs once it was opened with them: the file that marks such a home, what it
# means, and when to delete it.
MARKS: Final = {
    "metadata_url": (
        HOME_ID,
        "The metadata of the home {root} are on a PostgreSQL server",
        "metadata.db is in use again",
    ),
    "files": (
        MARK,
        "The home {root} has copies of files in a bucket",
        "the home has all files itself again",
    ),
}


def require_settings(settings: Settings) -> None:
    """Raise ConfigurationError if settings lack the server or the bucket that the home has.

    A process whose environment lacks the variables would begin a second database: with locks of its
    own, and without any scan. It would publish, and end the runs of other processes as killed.
    """
    root = settings.home.root
    for setting, (mark, what, otherwise) in MARKS.items():
        if getattr(settings, setting) is None and (root / mark).exists():
            raise ConfigurationError(
                f"{what.format(root=root)}, but {setting} is not set. Nothing was read or changed.",
                f"Set {setting} in settings.toml, or {PREFIX}{setting.upper()} for each process. "
                f"If {otherwise}, delete {root / mark}.",
            )


def open_store(settings: Settings, metadata: Metadata, clock: Clock) -> FileStore:
    """Return what keeps the files of a home.

    Raises ConfigurationError for a bucket that cannot be used with these settings, or belongs to
    another home or database; StorageFailed.
    """
    if settings.files is None:
        return IN_FOLDER
    if settings.metadata_url is None:
        raise ConfigurationError(
            "The setting files names a bucket, but metadata_url names no PostgreSQL database. "
            "Several machines use a bucket, and SQLite is a file of one. Nothing was changed.",
            "Set metadata_url, or remove files.",
        )
    bucket = open_bucket(settings.files, settings.files_endpoint)
    from pipelines.files.cached import CachedStore  # noqa: PLC0415 - most homes have no bucket

    store = CachedStore(settings.home.root, bucket, settings.readers)
    _require_own(bucket, metadata, clock)
    store.require_copies()
    store.refresh()
    return store


def open_bucket(url: str, endpoint: str | None) -> "Bucket":
    """Return a bucket. Raises ConfigurationError where the package for it is not installed."""
    try:
        from pipelines.files.bucket import Bucket  # noqa: PLC0415 - most homes have no bucket
    except ImportError as error:
        raise ConfigurationError(
            f"A bucket is named, but the package {error.name} is not installed. Nothing was "
            "changed.",
            "Run `pip install 'partner-sync[cluster]'`.",
        ) from error
    return Bucket(url, endpoint)


def _require_own(bucket: "Bucket", metadata: Metadata, clock: Clock) -> None:
    """Claim a bucket for the home of a database, known by the object `home.id`.

    Raises ConfigurationError where another home has the bucket, or another database the home.
    """
    known = bucket.read(HOME_ID)
    with metadata.transaction() as session:
        owner = session.scalars(select(HomeRow)).one_or_none()
        if owner is None and known is None:
            # Before the object: after a kill in between, the home claims the bucket again.
            now = clock.utc_now()
            owner = HomeRow(home_id=new_id(now), folder=bucket.url, claimed_at=now)
            session.add(owner)
    if known is None and owner is not None:
        bucket.write(HOME_ID, owner.home_id.encode(), None)
        known = bucket.read(HOME_ID)
    if owner is None or known is None or known.data.decode() != owner.home_id:
        raise ConfigurationError(
            f"The bucket {bucket.url} belongs to a home whose metadata database is another one "
            "than metadata_url names. Nothing was changed.",
            "Name the database of that home in metadata_url, or another bucket or prefix in "
            "files. If the database was lost, restore it from a backup.",
        )
