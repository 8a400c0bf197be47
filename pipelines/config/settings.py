"""Settings: the environment over `config/settings.toml` over defaults.

Among them are the lists that are read: the three of the interface document, and more.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic.json_schema import SkipJsonSchema

from pipelines.config import values
from pipelines.config.connections import CONNECTIONS, Connection
from pipelines.config.home import Home
from pipelines.config.homes import HOMES
from pipelines.config.types import Declared
from pipelines.core.errors import ConfigurationError
from pipelines.core.text import Redactor, from_system, printable

# Records of a page, as the interface document has it ("Paging limits").
MOST_RECORDS: Final = 500
MOST_IN_GENERAL: Final = 100
MOST_BY_PATH: Final = {"/v2/usage": MOST_RECORDS}
LARGEST_PAGE: Final = 10_000  # where the interface description allows more
DOCUMENTED: Final[dict[str, dict[str, Any]]] = {
    "partners": {"path": "/v2/partners"},
    "usage": {"path": "/v2/usage", "limit": MOST_RECORDS},
    "billing": {"path": "/v2/billing"},
}


def _split_names(given: Any) -> Any:
    """Return a list of names with commas between them, as an environment variable has them."""
    return re.findall(r"[^\s,]+", given) if isinstance(given, str) else given


Variables = Annotated[tuple[values.Variable, ...], BeforeValidator(_split_names)]


class Stream(values.Table):
    """One list of the service: `[streams.<name>]` of settings.toml over its defaults."""

    name: values.StreamName
    path: values.ListPath
    """path of the list; preset for the three documented lists"""
    surface: values.Surface = "partner"
    """partner or merchant"""
    limit: int = Field(default=MOST_IN_GENERAL, ge=1, le=LARGEST_PAGE)
    """records per page, within what the service documents; 500 for `usage`"""
    key: values.Key | None = None
    """field that identifies a record, or a list of fields; default: the first scan detects it"""
    passes: int = Field(default=1, ge=1, le=2)
    """readings that must agree; 2 prove a list whose rows change places, for twice the requests"""
    allow_empty: bool = False
    """load an empty list without approval"""
    max_deleted_share: float = Field(default=0.1, ge=0, le=1)
    """share of rows that may be deleted without approval"""
    contract: values.Contract = "evolve"
    """new columns and wider types: evolve, freeze or discard"""
    types: dict[str, Declared] = Field(default={})
    """types of fields, such as {usedAt = "epoch_seconds"}; see Types of fields"""


class Settings(values.Table):
    """All settings, validated and frozen."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    home: SkipJsonSchema[Home]  # named by a variable of the environment
    metadata_url: str | None = None
    """PostgreSQL URL of the metadata database; default: a SQLite file in the home"""
    files: values.BucketUrl | None = None
    """bucket that keeps the files, such as s3://bucket/prefix; default: the home"""
    files_endpoint: values.Endpoint | None = None
    """address of the service that has the bucket; default: AWS"""
    connections_at_once: int = Field(default=32, ge=1, le=1000)
    """connections that one sync reads at the same time"""
    publish_minutes: float = Field(default=5, gt=0)
    """minutes after which a sync publishes what is read so far, while it reads other connections"""
    sync_max_minutes: int = Field(default=120, ge=1)
    """minutes after which a list that is not proven complete is PARTIAL"""
    request_timeout_seconds: float = Field(default=60, gt=0, le=600)
    """seconds for a request and its whole answer"""
    max_clock_difference_hours: float = Field(default=24, gt=0)
    """hours by which the clock of the service may differ from that of this machine"""
    keep_versions: int = Field(default=3, ge=1)
    """number of versions to keep"""
    keep_days: int = Field(default=0, ge=0, le=36_500)
    """days for which `prune` keeps scan files; 0: forever"""
    memory_limit: values.Memory | None = None
    """memory that DuckDB uses before it spills to disk, from 64MB; default: see below"""
    schedule: values.Cron = "0 2 * * *"
    """when the nightly sync starts (cron, five fields)"""
    time_zone: ZoneInfo = ZoneInfo("UTC")
    """time zone of the schedule; days are always UTC"""
    start_date: date = date(2025, 1, 1)
    """first day that can be selected in Dagster"""
    stale_after_hours: float = Field(default=36, gt=0)
    """hours after which published rows are stale"""
    break_alert_amount: Decimal = Field(default=Decimal(0), ge=0)
    """amount, in any currency, from which an open break is a finding; 0: never"""
    approval: Literal["declared", "one", "two"] = "declared"
    """how a month is closed: two (another user of the machine approves), one person, or declared"""
    readers: str | None = None
    """group of the machine that may read reports, statements and closed months, and approve"""
    approvers: tuple[str, ...] = ()
    """users who may approve; none: any user of the machine but root, nobody, and who prepared"""
    notify: Variables = ()
    """names of environment variables with Apprise URLs that receive findings"""
    notify_summary: Variables = ()
    """the same, for a summary of usage and billing with each new version"""
    log_format: Literal["text", "json"] = "text"
    """format of messages on standard error: text, or json (one object per line)"""
    use_proxy: bool = False
    """use the proxy of the environment variables http_proxy and https_proxy"""
    streams: Annotated[
        dict[str, Stream], BeforeValidator(partial(values.name_tables, known=DOCUMENTED))
    ] = Field(default={})
    """settings of each stream, such as key and limit"""

    def _lacks_connections(self) -> ConfigurationError:
        """Return why there is no connection: it is a new home, one that lost its file, or none."""
        home = self.home
        message = f"{home.connections_file} names no connection"
        if os.path.lexists(home.pulled_file):
            return ConfigurationError(
                f"{message}: {home.root} has files that were pulled, and is no home. Nothing was "
                "changed.",
                "Run the command where `partner-sync sync` runs. Here, use `partner-sync sql`.",
            )
        if os.path.lexists(home.link) or home.metadata_file.exists():
            return ConfigurationError(
                f"{message}, although this home was synced. Nothing was changed.",
                "Restore it from a backup, or run `partner-sync init` with the names of before.",
            )
        return ConfigurationError(f"{message}.", "Run `partner-sync init` to add one.")

    def connections(self) -> dict[str, Connection]:
        """Return every connection by name. Raises ConfigurationError with every fault."""
        file = self.home.connections_file
        known = dict(_connections_in(file, values.read_content(file)))
        if not known:
            raise self._lacks_connections()
        for connection in known.values():
            unknown = [name for name in connection.skip if name not in self.streams]
            if unknown:
                raise ConfigurationError(
                    f"Connection `{connection.name}` skips an unknown stream: "
                    f"`{', '.join(unknown)}`. Streams: {', '.join(self.streams)}.",
                    f"Correct skip in {file}.",
                )
        return known

    def connection(self, name: str) -> Connection:
        """Return one connection. Raises ConfigurationError that lists the possible names."""
        known = self.connections()
        if name not in known:
            raise ConfigurationError(
                f"There is no connection `{name}`. Connections: {', '.join(known)}."
            )
        return known[name]

    def require_no_secret(self, texts: Iterable[str]) -> None:
        """Refuse texts that are kept and shown, if one has the secret of a connection.

        What `secret_command` would print is not asked for. Raises ConfigurationError.
        """
        redactor = Redactor()
        file = self.home.connections_file
        for connection in _connections_in(file, values.read_content(file)).values():
            # One without a secret has none that could be shown.
            with suppress(ConfigurationError):
                if not connection.secret_command:
                    redactor.add(connection.read_secret())
        if any(redactor.clean(text) != text for text in texts):
            raise ConfigurationError(
                "A text that is kept, and that others see, has the secret of a connection. Nothing "
                "was changed.",
                "Write it without the secret. If others may have seen it, replace the secret.",
            )

    def streams_of(self, connection: Connection) -> list[Stream]:
        """Return the streams that a connection reads, in the order of configuration."""
        return [
            stream
            for stream in self.streams.values()
            if stream.surface == connection.surface and stream.name not in connection.skip
        ]

    def skipped_by(self, connection: Connection) -> list[Stream]:
        """Return the streams that a connection could read but skips."""
        return [
            stream
            for stream in self.streams.values()
            if stream.surface == connection.surface and stream.name in connection.skip
        ]


# Each of many connections asks for its own entry. By content, because the file may change.
@lru_cache(maxsize=8)
def _connections_in(file: Path, content: bytes) -> dict[str, Connection]:
    given = values.parse_toml(file, content)
    return values.validate(CONNECTIONS, given, file, f"Correct {file}.")


def load_settings(home: Home | None = None) -> Settings:
    """Return the settings of a home. Raises ConfigurationError: no home, or every fault in it."""
    home = home or Home.from_environment()
    if not home.root.is_dir():
        raise ConfigurationError(
            f"The home {home.root} does not exist.",
            f"Run `partner-sync init`, or set {values.PREFIX}HOME to an existing home.",
        )
    given = {**values.read_toml(home.settings_file), **_read_variables(), "home": home}
    remedy = f"Correct {home.settings_file} or the environment variables {values.PREFIX}*."
    return values.validate(TypeAdapter(Settings), given, "the settings", remedy)


def _read_variables() -> dict[str, str]:
    """Return what variables of the environment set, by the names of settings.

    An empty one that names a setting is not set.
    """
    settings = {values.PREFIX + name.upper(): name for name in Settings.model_fields}
    given = {}
    for variable, text in os.environ.items():
        if not variable.startswith(values.PREFIX) or variable == HOMES:
            continue
        if variable not in settings:
            # It keeps its name, which validation refuses: it would be a misspelt one.
            given[variable] = _text_of(variable, text)
        elif text:
            given[settings[variable]] = _text_of(variable, text)
    return given


def _text_of(name: str, text: str) -> str:
    try:
        return from_system(text).strip()
    except UnicodeDecodeError:
        raise ConfigurationError(
            f"The environment variable {printable(name)} is not UTF-8 text. Nothing was changed.",
            f"Set {printable(name)} again.",
        ) from None
