"""What a user can set, where it comes from, and where things lie on disk.

Precedence: command line, environment `PARTNER_SYNC_*`, `config/settings.toml` in the home, default.
Secrets are never held here: a `Secret` knows the name of an environment variable or of a 0600 file
and reads it when it is asked.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from pipelines.errors import ConfigurationError

PREFIX = "PARTNER_SYNC_"
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def _address(url: str) -> str:
    """Accept https anywhere and http on this machine only (All calls use HTTPS)."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an address such as https://api.example.com")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("must be host, port and path only: no user, password, query or fragment")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise ValueError("must be https: http is for a service on this machine only")
    return url.rstrip("/")


Address = Annotated[str, AfterValidator(_address)]


@dataclass(frozen=True)
class Secret:
    """The whereabouts of a secret: an environment variable, else a file only its owner can read."""

    variable: str
    file: Path | None = None

    def read(self) -> str:
        """Return the secret; raise ConfigurationError where it is absent or open to others."""
        if value := os.environ.get(self.variable):
            return value
        if self.file is None:
            raise ConfigurationError(f"{self.variable} is not set")
        try:
            mode = self.file.stat().st_mode
            text = self.file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigurationError(f"secret file {self.file}: {error.strerror}") from None
        if stat.S_IMODE(mode) & 0o077:
            raise ConfigurationError(
                f"secret file {self.file} can be read by others: chmod 600 {self.file}"
            )
        return text


@dataclass(frozen=True)
class Connection:
    """One set of credentials: where the service is and who asks."""

    name: str
    base_url: str
    auth_url: str
    audience: str
    client_id: str
    secret: Secret = field(repr=False)


@dataclass(frozen=True)
class Home:
    """The folders of one `PARTNER_SYNC_HOME`; analysts see `root` and `published` only."""

    root: Path

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
        """What a person wrote: settings.toml."""
        return self.root / "config"

    @property
    def published(self) -> Path:
        """The versioned files behind the link that analysts open."""
        return self.root / "published"

    @property
    def link(self) -> Path:
        """The one path that analysts open."""
        return self.root / "warehouse.duckdb"

    def prepare(self) -> None:
        """Create the folders with their modes: ours 0700, what analysts read 0755."""
        for folder, mode in (
            (self.root, 0o755),
            (self.archive, 0o700),
            (self.state, 0o700),
            (self.work, 0o700),
            (self.config, 0o700),
            (self.published, 0o755),
        ):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(mode)
            except OSError as error:
                raise ConfigurationError(
                    f"home {self.root}: {error.strerror}; set {PREFIX}HOME to a folder of yours"
                ) from None


class StreamSettings(BaseModel):
    """What can be set for one stream, in `[streams.<name>]` of settings.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str | None = Field(default=None, description="the field that identifies a record")


class Settings(BaseSettings):
    """All settings, validated and frozen."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", hide_input_in_errors=True
    )

    home: Path = Field(default=Path("~/.partner-sync"), description="where everything lies")
    base_url: Address | None = Field(default=None, description="address of the service")
    auth_url: Address | None = Field(default=None, description="address of the identity provider")
    audience: str | None = Field(
        default=None, description="the API identifier asked for in a token"
    )
    client_id: str | None = Field(default=None, description="who asks")
    client_secret_file: Path | None = Field(
        default=None,
        description="0600 file with the secret, where PARTNER_SYNC_CLIENT_SECRET is not set",
    )
    ca_file: Path | None = Field(
        default=None, description="certificates to trust instead of the system's"
    )
    rate: int = Field(
        default=5, ge=1, description="requests a window, until the service's headers tell"
    )
    window: float = Field(default=1.0, ge=0, description="seconds of the sliding window (Limits)")
    keep_versions: int = Field(default=3, ge=1, description="published files kept")
    memory_limit: str = Field(
        default="160MB", description="what DuckDB may use before it spills to disk"
    )
    schedule: str = Field(default="0 2 * * *", description="when the nightly sync begins (cron)")
    time_zone: str = Field(default="UTC", description="of the schedule; days are always UTC")
    start_date: date = Field(default=date(2025, 1, 1), description="first day that can be chosen")
    streams: Mapping[str, StreamSettings] = Field(default={}, description="per stream: key")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the environment, then settings.toml of the home that the first two name."""
        del dotenv_settings, file_secret_settings  # a secret is named, never stored in settings
        named = {**env_settings(), **init_settings()}.get("home") or cls.model_fields[
            "home"
        ].default
        toml = Home(Path(named).expanduser()).config / "settings.toml"
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, toml)

    def connection(self) -> Connection:
        """Return the connection `default` that the settings describe.

        Raises ConfigurationError naming every variable that is missing.
        """
        needed = {
            "base_url": self.base_url,
            "auth_url": self.auth_url,
            "audience": self.audience,
            "client_id": self.client_id,
        }
        values = {name: value for name, value in needed.items() if value is not None}
        if len(values) < len(needed):
            missing = ", ".join(PREFIX + name.upper() for name in needed if name not in values)
            raise ConfigurationError(
                f"not set: {missing}. Set them in the environment or in "
                f"{self.place.config / 'settings.toml'}; `partner-sync demo` needs none of them."
            )
        return Connection(
            name="default",
            secret=Secret(f"{PREFIX}CLIENT_SECRET", self.client_secret_file),
            **values,
        )

    @property
    def place(self) -> Home:
        """The home's folders."""
        return Home(self.home.expanduser().absolute())


def load(home: Path | None = None) -> Settings:
    """Return the settings of a home; raise ConfigurationError naming each wrong one."""
    try:
        return Settings() if home is None else Settings(home=home)
    except ValidationError as error:
        lines = [
            f"{PREFIX}{'.'.join(map(str, each['loc'])).upper()}: {each['msg']}"
            for each in error.errors(include_input=False, include_url=False)
        ]
        raise ConfigurationError("; ".join(lines)) from None
