"""Settings: the environment over `config/settings.toml` over defaults."""

import os
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from pipelines.config.connections import Connection, read_connections
from pipelines.config.home import Home
from pipelines.config.streams import Stream, StreamSettings, configured_streams
from pipelines.config.values import PREFIX
from pipelines.core.errors import ConfigurationError


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError("must be a time zone such as Europe/Berlin") from None
    return name


class Settings(BaseSettings):
    """All settings, validated and frozen."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,  # an empty PARTNER_SYNC_HOME would be the current folder
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
    )

    home: Path = Field(description="folder that holds everything")
    metadata_url: str | None = Field(
        default=None, description="PostgreSQL database for metadata, instead of a file in the home"
    )
    sync_max_minutes: int = Field(
        default=120, ge=1, description="minutes after which a list that changes too fast is PARTIAL"
    )
    request_timeout_seconds: float = Field(
        default=60,
        gt=0,
        le=600,
        description="seconds within which a request must be answered whole",
    )
    max_clock_difference_hours: float = Field(
        default=24, gt=0, description="hours by which the service's clock may differ from ours"
    )
    keep_versions: int = Field(default=3, ge=1, description="versions kept")
    memory_limit: str = Field(
        default="128MB",
        pattern=r"(?i)^[0-9]+(\.[0-9]+)? ?[KMGT]i?B$",
        description="memory that DuckDB uses before it spills to disk",
    )
    schedule: str = Field(
        default="0 2 * * *",
        pattern=r"^\S+( \S+){4}$",
        description="when the nightly sync starts (cron, five fields)",
    )
    time_zone: Annotated[str, AfterValidator(_zone)] = Field(
        default="UTC", description="time zone of the schedule; days are always UTC"
    )
    start_date: str = Field(
        default="2025-01-01",
        pattern=r"^\d{4}-\d{2}-\d{2}$",
        description="first day that can be chosen in Dagster",
    )
    stale_after_hours: float = Field(
        default=36, gt=0, description="hours after which published rows count as stale"
    )
    use_proxy: bool = Field(
        default=False, description="use the proxy that the environment's variables name"
    )
    streams: dict[str, StreamSettings] = Field(
        default={}, description="per stream: key, limit, contract; path and surface of others"
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
        """Read arguments, the environment, then settings.toml of the home."""
        del dotenv_settings, file_secret_settings  # a secret is named, never stored in settings
        file = Home(Path(init_settings()["home"])).settings_file
        try:
            return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, file)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"Cannot read {file}: {error}.") from None

    @property
    def places(self) -> Home:
        """The folders of the home."""
        return Home(self.home)

    def all_streams(self) -> dict[str, Stream]:
        """Return every stream by name. Raises ConfigurationError."""
        return configured_streams(self.streams)

    def connections(self) -> dict[str, Connection]:
        """Return every connection by name. Raises ConfigurationError."""
        return read_connections(self.places.connections_file)

    def connection(self, name: str) -> Connection:
        """Return one connection. Raises ConfigurationError that lists the possible names."""
        known = self.connections()
        if name not in known:
            raise ConfigurationError(
                f"There is no connection `{name}`. Connections: {', '.join(known)}."
            )
        return known[name]

    def streams_of(self, connection: Connection) -> list[Stream]:
        """Return the streams that a connection reads, in the order of configuration."""
        return [
            stream
            for stream in self.all_streams().values()
            if stream.surface == connection.surface and stream.name not in connection.skip
        ]


def load_settings(home: Home | None = None) -> Settings:
    """Return the settings of a home. Raises ConfigurationError that names every fault."""
    home = home or Home.from_environment()
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    unknown = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)
    if unknown:
        raise ConfigurationError(
            f"There is no setting {', '.join(unknown)}.", "Remove it, or correct its name."
        )
    try:
        settings = Settings(home=home.root)
        settings.all_streams()
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, each['loc']))}: {each['msg'].removeprefix('Value error, ')}"
            for each in error.errors(include_input=False, include_url=False)
        ]
        raise ConfigurationError(
            f"Settings are not valid: {'; '.join(faults)}.",
            f"Correct {home.settings_file} or the environment variables {PREFIX}*.",
        ) from None
    return settings
