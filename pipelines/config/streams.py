"""The lists that are read: the three of the interface document, and more by configuration."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from pipelines.config.values import LIST_PATH, STREAM_NAME, Contract, Surface
from pipelines.core.errors import ConfigurationError

RESERVED = frozenset({"main", "meta", "current", "history", "quarantine", "reconciliation"})
DEFAULT_LIMIT = 100  # "List endpoints in general", maximum


@dataclass(frozen=True)
class Stream:
    """One list of the service. `limit` is the page size that is asked for."""

    name: str
    path: str
    surface: Surface = "partner"
    limit: int = DEFAULT_LIMIT
    key: str | None = None
    allow_empty: bool = False
    max_deleted_share: float = 0.1
    contract: Contract = "evolve"


DOCUMENTED = {
    "partners": Stream("partners", "/v2/partners"),
    "usage": Stream("usage", "/v2/usage", limit=500),
    "billing": Stream("billing", "/v2/billing"),
}


class StreamSettings(BaseModel):
    """`[streams.<name>]` of settings.toml; what is not given keeps its default."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    path: str | None = Field(
        default=None, pattern=LIST_PATH, description="path of a list that is not documented"
    )
    surface: Surface | None = Field(default=None, description="partner or merchant")
    limit: int | None = Field(default=None, ge=1, description="records per page")
    key: str | None = Field(default=None, description="field that identifies a record")
    allow_empty: bool | None = Field(default=None, description="an empty list is not an accident")
    max_deleted_share: float | None = Field(
        default=None, ge=0, le=1, description="share of rows that may vanish without approval"
    )
    contract: Contract | None = Field(
        default=None, description="new columns and wider types: evolve, freeze or discard"
    )


def configured_streams(configured: dict[str, StreamSettings]) -> dict[str, Stream]:
    """Return every stream by name: the documented ones, changed and extended by settings.

    Raises ConfigurationError for a name that cannot be a table, or a new stream without a path.
    """
    streams = dict(DOCUMENTED)
    for name, settings in configured.items():
        given = settings.model_dump(exclude_none=True)
        if not STREAM_NAME.fullmatch(name) or name in RESERVED:
            raise ConfigurationError(
                f"`{name}` cannot be a stream's name: it must be of small letters, digits, - and "
                "single _, and not the name of a schema."
            )
        if name not in DOCUMENTED and "path" not in given:
            raise ConfigurationError(
                f"Stream `{name}` has no path and is not one of {', '.join(DOCUMENTED)}.",
                f'Add path = "/v2/..." to [streams.{name}] in settings.toml.',
            )
        known = DOCUMENTED.get(name)
        values = {**(known.__dict__ if known else {}), "name": name, **given}
        streams[name] = Stream(**values)
    return streams
