"""The folders of one home (`PARTNER_SYNC_HOME`)."""

import os
from pathlib import Path
from typing import Final

from pipelines.config.values import PREFIX
from pipelines.core.errors import ConfigurationError
from pipelines.core.files import private_folder
from pipelines.core.person import expand_user, usable_path

DEFAULT_HOME = Path("~/.partner-sync")


class Home:
    """Paths below one folder. Analysts read links, `versions` and `books`; the rest is private."""

    def __init__(self, root: Path) -> None:
        self.root: Final = root
        self.settings_file: Final = root / "config" / "settings.toml"
        self.connections_file: Final = root / "config" / "connections.toml"
        self.mapping_file: Final = root / "config" / "mapping.toml"
        self.metadata_file: Final = root / "metadata.db"  # unless a setting names PostgreSQL
        self.archive: Final = root / "archive"
        self.versions: Final = root / "versions"
        self.link: Final = root / "warehouse.duckdb"  # to the published version
        self.pulled_file: Final = root / "pulled.json"  # of a folder of `pull`, which is no home
        self.books: Final = root / "books"
        self.books_link: Final = root / "books.duckdb"  # to the published books
        self.reports: Final = root / "reports"
        self.closes: Final = root / "closes"
        self.inbox: Final = root / "inbox"  # of approvals by other users
        self.approvals: Final = root / "approvals"  # that were taken over
        self.statements: Final = root / "statements"  # for partners
        self.exports: Final = root / "exports"
        self.locks: Final = root / "locks"
        self.dagster: Final = root / "dagster"  # of `make dev`

    @classmethod
    def from_environment(cls) -> "Home":
        """Return the home that the environment names, else the default. Reads no file.

        Raises ConfigurationError where the path cannot be used.
        """
        name = f"{PREFIX}HOME"
        given = os.environ.get(name, "").strip()
        try:
            root = expand_user(Path(given or DEFAULT_HOME))
        except ConfigurationError as error:
            why = "below a folder that does not exist" if given else "not set"
            raise ConfigurationError(
                f"There is no home: {name} is {why}. {error}",
                f"Set {name} to the full path of a folder.",
            ) from None
        return cls(usable_path(root.absolute()))

    def prepare(self) -> "Home":
        """Create the folders: ours 0700, those that analysts read 0755."""
        try:
            self.root.mkdir(mode=0o755, parents=True, exist_ok=True)
            self.versions.mkdir(mode=0o755, exist_ok=True)
            self.books.mkdir(mode=0o755, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"The home {self.root} cannot be created: {error.strerror}.",
                f"Set {PREFIX}HOME to a folder that you can write.",
            ) from error
        for folder in (self.archive, self.locks, self.settings_file.parent):
            private_folder(folder)
        return self
