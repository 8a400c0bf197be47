"""What a user can set, where it comes from, and where things lie on disk.

Precedence: command line, environment `PARTNER_SYNC_*`, `config/settings.toml` in the home, default.
Secrets are never held here: a `Secret` knows the name of an environment variable or of a 0600 file
and reads it when it is asked.
"""

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import httpx
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from pipelines.errors import ConfigurationError

PREFIX = "PARTNER_SYNC_"
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
LAST_PORT = 65535


def _address(text: str) -> str:
    """Accept https anywhere and http on this machine only (All calls use HTTPS).

    Read by the same parser as the client's, so that both see the same host. Its own words are not
    passed on: they quote the address.
    """
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL()
    port = url.port is None or 1 <= url.port <= LAST_PORT
    if url.scheme not in {"http", "https"} or not re.fullmatch(r"[\w.:-]+", url.host) or not port:
        raise ValueError("must be an address such as https://api.example.com")
    if url.userinfo or url.fragment or "?" in text:
        raise ValueError("must be host, port and path only: no user, password, query or fragment")
    if url.scheme == "http" and url.host not in LOOPBACK:
        raise ValueError("must be https: http is for a service on this machine only")
    return text.rstrip("/")


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("the folder of that user is not known here") from None


def _zone(name: str) -> str:
    try:
        _ = name == "UTC" or ZoneInfo(name)  # UTC needs no table of zones
    except (KeyError, ValueError, OSError):
        raise ValueError("must be a time zone such as Europe/Berlin") from None
    return name


def _decoded(value: object) -> object:
    """Read what the environment can only give as text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("must be JSON") from None


Address = Annotated[str, AfterValidator(_address)]
Place = Annotated[Path, AfterValidator(_expanded)]


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
        except UnicodeDecodeError:
            raise ConfigurationError(f"secret file {self.file} is not text in UTF-8") from None
        if stat.S_IMODE(mode) & 0o077:
            raise ConfigurationError(
                f"secret file {self.file} can be read by others: chmod 600 {self.file}"
            )
        if not text:
            raise ConfigurationError(f"secret file {self.file} is empty")
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
        env_prefix=PREFIX,
        env_ignore_empty=True,  # an empty PARTNER_SYNC_HOME would be the current folder
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
    )

    home: Place = Field(default=Path("~/.partner-sync"), description="where everything lies")
    base_url: Address | None = Field(default=None, description="address of the service")
    auth_url: Address | None = Field(default=None, description="address of the identity provider")
    audience: str | None = Field(
        default=None, description="the API identifier asked for in a token"
    )
    client_id: str | None = Field(default=None, description="who asks")
    client_secret_file: Place | None = Field(
        default=None,
        description="0600 file with the secret, where PARTNER_SYNC_CLIENT_SECRET is not set",
    )
    ca_file: Place | None = Field(
        default=None, description="certificates to trust instead of the system's"
    )
    rate: int = Field(
        default=5, ge=1, description="requests a window, until the service's headers tell"
    )
    window: float = Field(
        default=1.0, ge=0, allow_inf_nan=False, description="seconds of the sliding window (Limits)"
    )
    keep_versions: int = Field(default=3, ge=1, description="published files kept")
    memory_limit: str = Field(
        default="160MB",
        pattern=r"(?i)^[0-9]+(\.[0-9]+)? ?[KMGT]i?B$",
        description="what DuckDB may use before it spills to disk",
    )
    schedule: str = Field(default="0 2 * * *", description="when the nightly sync begins (cron)")
    time_zone: Annotated[str, AfterValidator(_zone)] = Field(
        default="UTC", description="of the schedule; days are always UTC"
    )
    start_date: date = Field(default=date(2025, 1, 1), description="first day that can be chosen")
    streams: Annotated[Mapping[str, StreamSettings], NoDecode, BeforeValidator(_decoded)] = Field(
        default={}, description="per stream: key"
    )

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
        default = cls.model_fields["home"].default
        home = {"home": default, **env_settings(), **init_settings()}["home"]
        try:
            file = Home(_expanded(Path(home))).config / "settings.toml"
            return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, file)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{PREFIX}HOME, config/settings.toml: {error}") from None

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
        return Home(self.home.absolute())


def load(home: Path | None = None) -> Settings:
    """Return the settings of a home; raise ConfigurationError naming each wrong one."""
    try:
        return Settings() if home is None else Settings(home=home)
    except ValidationError as error:
        lines = [
            f"{PREFIX}{'.'.join(map(str, each['loc'])).upper()}: {each['msg']}"
            for each in error.errors(include_input=False, include_url=False)
        ]
        raise ConfigurationError("; ".join(lines).replace("Value error, ", "")) from None
