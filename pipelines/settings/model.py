"""Every setting with its bounds and default, and the order in which sources are asked."""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from pipelines.clock import SYSTEM, Clock, beginning
from pipelines.errors import ConfigurationError
from pipelines.settings import connections, rehearsal, shared
from pipelines.settings.connection import Connection, Secret
from pipelines.settings.home import USUAL, Home
from pipelines.settings.shared import Database, Lake, Store
from pipelines.settings.targets import Mail, Webhook
from pipelines.settings.values import (
    LIST_PATH,
    OWNERS,
    PREFIX,
    Address,
    FromJson,
    Place,
    Surface,
    Zone,
    expanded,
)


class StreamSettings(BaseModel):
    """What can be set for one stream, in `[streams.<name>]` of settings.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str | None = Field(default=None, description="the field that identifies a record")
    may_be_empty: bool = Field(default=False, description="an empty list is no accident")
    policy: Literal["evolve", "freeze", "discard"] = Field(
        default="evolve", description="what new columns and wider types may do to the tables"
    )
    may_disappear: float = Field(
        default=0.1, ge=0, le=1, description="share of the rows that may be gone in one reading"
    )
    path: str | None = Field(
        default=None,
        pattern=LIST_PATH,
        description="of a list that is read only because it is set here",
    )
    surface: Surface = Field(default="partner", description="whose credentials open that path")
    limit: int | None = Field(default=None, ge=1, description="records a page, at most")


class Settings(BaseSettings):
    """All settings, validated and frozen."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,  # an empty PARTNER_SYNC_HOME would be the current folder
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
    )

    home: Place = Field(default=USUAL, description="where everything lies")
    state: Database | None = Field(default=None, description="ledger of several machines")
    archive: Store | None = Field(default=None, description="archive of several machines")
    warehouse: Lake | None = Field(default=None, description="warehouse of several machines")
    lake_data: Store | None = Field(default=None, description="where that warehouse's files lie")
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
        default=None, description="certificates to trust instead of the built-in ones"
    )
    description_path: str | None = Field(
        default=None,
        pattern=r"^/[^\s?#]*$",
        description="where the interface description is, where nothing under /docs/ leads to it",
    )
    rate: int = Field(
        default=5, ge=1, description="requests a window, until the service's headers tell"
    )
    window: float = Field(
        default=1.0, ge=0, allow_inf_nan=False, description="seconds of the sliding window (Limits)"
    )
    allowance: int | None = Field(
        default=None, ge=1, description="requests a window that are ours; all, where it is not set"
    )
    budget_key: str | None = Field(
        default=None, description="what connections share whose clients or keys are one actor"
    )
    sync_max_minutes: int | None = Field(
        default=None,
        ge=1,
        description="Maximum minutes that one list is counted before it is graded PARTIAL",
    )
    keep_versions: int = Field(default=3, ge=1, description="published files kept")
    reconcile: bool = Field(
        default=True, description="whether a publication holds reconciliation and reports"
    )
    keep_readings: int = Field(
        default=400, ge=1, description="readings of each list that `retain` keeps in the archive"
    )
    memory_limit: str = Field(
        default="120MB",
        pattern=r"(?i)^[0-9]+(\.[0-9]+)? ?[KMGT]i?B$",
        description="what DuckDB may use before it spills to disk",
    )
    schedule: str = Field(
        default="0 2 * * *",
        pattern=r"^\S+( \S+){4}$",
        description="when the nightly sync begins (cron, five fields)",
    )
    time_zone: Zone = Field(default="UTC", description="of the schedule; days are always UTC")
    executor: Literal["in_process", "celery"] = Field(
        default="in_process", description="where the steps of a run are executed"
    )
    owners: str = Field(
        default="team:data",
        pattern=OWNERS,
        description="who answers for the assets: teams (team:data) and e-mail addresses",
    )
    docs_url: Address | None = Field(
        default=None, description="where the docs are published; assets link to them"
    )
    start_date: date = Field(default=date(2025, 1, 1), description="first day that can be chosen")
    now: AwareDatetime | None = Field(
        default=None, description="rehearsals: the time from which on a program's dates count"
    )
    stale_after: float = Field(
        default=36.0, gt=0, allow_inf_nan=False, description="hours until published rows are stale"
    )
    alert_again: float = Field(
        default=24.0, gt=0, allow_inf_nan=False, description="hours until an alert is told again"
    )
    webhook: Annotated[Webhook | None, NoDecode, FromJson] = Field(
        default=None, description="where alerts are posted as JSON"
    )
    mail: Annotated[Mail | None, NoDecode, FromJson] = Field(
        default=None, description="to whom alerts are mailed"
    )
    streams: Annotated[Mapping[str, StreamSettings], NoDecode, FromJson] = Field(
        default={}, description="per stream: key, may_be_empty, limit; path and surface of others"
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
            file = Home(expanded(Path(home))).config / "settings.toml"
            return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, file)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{PREFIX}HOME, config/settings.toml: {error}") from None

    def connections(self) -> Mapping[str, Connection]:
        """Return every connection by its name: those of connections.toml, else the environment's.

        What a table leaves out (`allowance`, `budget_key`, `ca_file`) is the setting of that name.
        Raises ConfigurationError naming all that is wrong or missing.
        """
        own = connections.read(self.place.config / "connections.toml")
        every = (own or {"default": self._environments()}).values()
        return {
            each.name: replace(
                each,
                allowance=each.allowance or self.allowance,
                budget_key=each.budget_key or self.budget_key,
                ca_file=each.ca_file or self.ca_file,
            )
            for each in every
        }

    def connection(self, name: str = "default") -> Connection:
        """Return a connection; raise ConfigurationError where there is none of that name."""
        every = self.connections()
        if name not in every:
            known = ", ".join(every)
            raise ConfigurationError(f"no connection {name!r}; there are {known}")
        return every[name]

    def add_connection(self, name: str, fields: Mapping[str, str]) -> list[str]:
        """Write a connection into connections.toml; return the names of what was written.

        Into a new file the environment's connection goes first, so that it does not vanish. Raises
        ConfigurationError for what the file may not say.
        """
        file = self.place.config / "connections.toml"
        written = [name]
        self.place.prepare()
        if name != "default" and not file.exists() and (own := self._written_down()):
            connections.append(file, "default", own)
            written.insert(0, "default")
        connections.append(file, name, fields)
        return written

    def _written_down(self) -> dict[str, str]:
        """Return the environment's connection as a table says it; empty where there is none."""
        try:
            own = self._environments()
        except ConfigurationError:
            return {}
        file = {"secret_file": str(own.secret.file.absolute())} if own.secret.file else {}
        names = ("base_url", "auth_url", "audience", "client_id")
        return {each: getattr(own, each) for each in names} | {
            "secret": connections.OWN_VARIABLE,
            **file,
        }

    def _environments(self) -> Connection:
        """Return the connection `default` that the environment and settings.toml describe."""
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
        secret = Secret(connections.OWN_VARIABLE, self.client_secret_file)
        return Connection(
            "default",
            values["base_url"],
            values["auth_url"],
            values["audience"],
            values["client_id"],
            secret,
        )

    def stream(self, name: str) -> StreamSettings:
        """Return what is set for one stream."""
        return self.streams.get(name, StreamSettings())

    @property
    def clock(self) -> Clock:
        """The time: the system's, in a rehearsal one whose dates begin at `now`."""
        return SYSTEM if self.now is None else beginning(self.now)

    @property
    def place(self) -> Home:
        """The home's folders."""
        return Home(self.home.absolute(), self.warehouse or "", self.lake_data or "")


def load(home: Path | None = None) -> Settings:
    """Return the settings of a home; raise ConfigurationError naming each wrong one."""
    known = {PREFIX + name.upper() for name in (*Settings.model_fields, "client_secret")}
    unknown = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)
    if unknown:
        raise ConfigurationError(f"no such setting: {', '.join(unknown)}")
    try:
        loaded = Settings() if home is None else Settings(home=home)
    except ValidationError as error:
        lines = [
            f"{PREFIX}{'.'.join(map(str, each['loc'])).upper()}: {each['msg']}"
            for each in error.errors(include_input=False, include_url=False)
        ]
        raise ConfigurationError("; ".join(lines).replace("Value error, ", "")) from None
    shared.refuse_halves(loaded.state, loaded.archive, loaded.warehouse, loaded.lake_data)
    shared.refuse_nested(loaded.archive, loaded.lake_data)
    if loaded.now is not None:
        rehearsal.refuse_elsewhere(loaded.connections().values())
    return loaded
