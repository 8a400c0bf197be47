"""The folders of one home (`PARTNER_SYNC_HOME`)."""

import os
from dataclasses import dataclass
from pathlib import Path

from pipelines.config.values import PREFIX
from pipelines.core.errors import ConfigurationError
from pipelines.core.files import private_folder

DEFAULT_HOME = Path("~/.partner-sync")


@dataclass(frozen=True)
class Home:
    """Paths below one folder. Analysts read `link` and `versions`; the rest is private."""

    root: Path

    @classmethod
    def from_environment(cls) -> "Home":
        """Return the home that the environment names, else the default. Reads no file."""
        given = os.environ.get(f"{PREFIX}HOME") or DEFAULT_HOME
        return cls(Path(given).expanduser().absolute())

    @property
    def settings_file(self) -> Path:
        """Settings, written by a person."""
        return self.root / "config" / "settings.toml"

    @property
    def connections_file(self) -> Path:
        """Connections, with the names of secrets."""
        return self.root / "config" / "connections.toml"

    @property
    def metadata_file(self) -> Path:
        """The metadata database, unless a setting names PostgreSQL."""
        return self.root / "metadata.db"

    @property
    def archive(self) -> Path:
        """Scan files."""
        return self.root / "archive"

    @property
    def versions(self) -> Path:
        """Version files."""
        return self.root / "versions"

    @property
    def link(self) -> Path:
        """The path that analysts open: a symlink to the published version."""
        return self.root / "warehouse.duckdb"

    @property
    def locks(self) -> Path:
        """Lock files."""
        return self.root / "locks"

    @property
    def dagster(self) -> Path:
        """Dagster's own storage, in `make dev`."""
        return self.root / "dagster"

    def require(self) -> "Home":
        """Return this home. Raises ConfigurationError where it does not exist."""
        if not self.root.is_dir():
            raise ConfigurationError(
                f"The home {self.root} does not exist.",
                f"Run `partner-sync init`, or set {PREFIX}HOME to an existing home.",
            )
        return self

    def prepare(self) -> "Home":
        """Create the folders: ours 0700, those that analysts read 0755."""
        try:
            self.root.mkdir(mode=0o755, parents=True, exist_ok=True)
            self.versions.mkdir(mode=0o755, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"The home {self.root} cannot be created: {error.strerror}.",
                f"Set {PREFIX}HOME to a folder that you can write.",
            ) from error
        for folder in (self.archive, self.locks, self.settings_file.parent):
            private_folder(folder)
        return self
