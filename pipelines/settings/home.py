"""The folders of one home, and who may read them."""

import os
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import ConfigurationError
from pipelines.settings.values import PREFIX, expanded

USUAL = Path("~/.partner-sync")  # where nobody says otherwise


@dataclass(frozen=True)
class Home:
    """The folders of one `PARTNER_SYNC_HOME`; analysts see `root`, `published` and `exports`.

    Where several machines share a warehouse, `warehouse` and `lake_data` say where that is.
    """

    root: Path
    warehouse: str = ""
    lake_data: str = ""

    @classmethod
    def usual(cls) -> "Home":
        """Return the home that the environment names, else the default; nothing in it is read."""
        given = (os.environ.get(f"{PREFIX}{name}", "") for name in ("WAREHOUSE", "LAKE_DATA"))
        return cls(expanded(Path(os.environ.get(f"{PREFIX}HOME") or USUAL)).absolute(), *given)

    @property
    def archive(self) -> Path:
        """Page bodies and manifests: the evidence."""
        return self.root / "archive"

    @property
    def state(self) -> Path:
        """The ledger and the lock files."""
        return self.root / "state"

    @property
    def work(self) -> Path:
        """The pipeline's own database and its temporary files."""
        return self.root / "work"

    @property
    def config(self) -> Path:
        """What a person wrote: settings.toml, connections.toml."""
        return self.root / "config"

    @property
    def published(self) -> Path:
        """The versioned files behind the link that analysts open."""
        return self.root / "published"

    @property
    def exports(self) -> Path:
        """What `export` wrote, for whoever asked for it."""
        return self.root / "exports"

    @property
    def reports(self) -> Path:
        """The pages that `report` wrote, for whoever opens them."""
        return self.root / "reports"

    @property
    def link(self) -> Path:
        """The one path that analysts open."""
        return self.root / "warehouse.duckdb"

    @property
    def address(self) -> str:
        """Where analysts find the tables, as a URL."""
        return self.warehouse or self.link.as_uri()

    def prepare(self) -> None:
        """Create the folders with their modes: ours 0700, what analysts read 0755.

        A root that was there keeps its mode: who may enter it was somebody's decision. So does a
        `config` that we may not write: it is mounted from elsewhere.
        """
        private = (self.archive, self.state, self.work, self.config)
        try:
            made = not self.root.exists()
            self.root.mkdir(parents=True, exist_ok=True)
            for folder in (*private, self.published):
                folder.mkdir(exist_ok=True)
            for folder in private:
                if folder != self.config or os.access(folder, os.W_OK):
                    folder.chmod(0o700)
            for folder in (self.published, *([self.root] if made else [])):
                folder.chmod(0o755)
        except OSError as error:
            raise ConfigurationError(
                f"home {self.root}: {error.strerror}; set {PREFIX}HOME to a folder of yours"
            ) from None
