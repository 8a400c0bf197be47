"""Here: a metadata database on a server belongs to one home.

Two homes in one database would take each other's scans for lost ones. A SQLite file is in its home,
so nothing is asked there.
"""

from pathlib import Path

from sqlalchemy import select

from pipelines.core.clock import Clock
from pipelines.core.errors import ConfigurationError
from pipelines.core.files import storing, write_durably
from pipelines.metadata.engine import Metadata, new_id
from pipelines.metadata.tables import HomeRow


def require_own_database(metadata: Metadata, folder: Path, clock: Clock) -> None:
    """Claim a database for the home in a folder; raise ConfigurationError if another one has.

    The home is known by an identifier in its file `home.id`, so it may be moved, but not copied.
    """
    file = folder / "home.id"
    with metadata.transaction() as session:
        owner = session.scalars(select(HomeRow)).one_or_none()
        with storing(file):
            own_id = file.read_text("utf-8").strip() if file.exists() else ""
        if owner is not None and owner.home_id != own_id:
            raise ConfigurationError(
                f"The database that metadata_url names belongs to the home {owner.folder}, not to "
                f"{folder}. Nothing was changed.",
                "Name another database, or another schema of it: add "
                "?options=-csearch_path%3DNAME to metadata_url. If this is the same home and its "
                f"file home.id was lost, write {owner.home_id} into {file}.",
            )
        if owner is not None and owner.folder != str(folder):
            _require_moved(Path(owner.folder), folder, own_id)
            owner.folder = str(folder)
        if owner is None:
            if not own_id:
                own_id = new_id(clock.utc_now())
                # Before the row: after a kill in between, the home claims the database again.
                write_durably(file, own_id.encode())
            row = HomeRow(home_id=own_id, folder=str(folder), claimed_at=clock.utc_now())
            session.add(row)


def _require_moved(before: Path, folder: Path, own_id: str) -> None:
    """Raise ConfigurationError if a home is still in the folder where it was before."""
    file = before / "home.id"
    with storing(file):
        is_copied = file.exists() and file.read_text("utf-8").strip() == own_id
    if is_copied:
        raise ConfigurationError(
            f"The home {folder} is a copy of {before}, which has the database that metadata_url "
            "names. Nothing was changed.",
            f"Name another database in {folder}, or delete {before} if it is no longer used.",
        )
