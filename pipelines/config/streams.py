"""The lists that are read: the three of the interface document, and more by configuration."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from pydantic import ConfigDict, Field

from pipelines.config.values import Contract, ListPath, Surface

DOCUMENTED: Final[dict[str, dict[str, Any]]] = {
    "partners": {"path": "/v2/partners"},
    "usage": {"path": "/v2/usage", "limit": 500},
    "billing": {"path": "/v2/billing"},
}


@dataclass(frozen=True)
class Stream:
    """One list of the service: `[streams.<name>]` of settings.toml over its defaults."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    name: str
    path: Annotated[
        ListPath, Field(description="path of the list; the three documented lists have theirs")
    ]
    surface: Annotated[Surface, Field(description="partner or merchant")] = "partner"
    # The default is the maximum of "List endpoints in general".
    limit: Annotated[int, Field(ge=1, description="records per page; 500 for `usage`")] = 100
    key: Annotated[
        str | None, Field(description="field that identifies a record; the first scan pins it")
    ] = None
    allow_empty: Annotated[bool, Field(description="an empty list is not an accident")] = False
    max_deleted_share: Annotated[
        float, Field(ge=0, le=1, description="share of rows that may vanish without approval")
    ] = 0.1
    contract: Annotated[
        Contract, Field(description="new columns and wider types: evolve, freeze or discard")
    ] = "evolve"


def add_documented(configured: Any) -> Any:
    """Return tables of streams with the documented ones, their defaults, and names."""
    if not isinstance(configured, dict):
        return configured
    return {
        name: {**DOCUMENTED.get(name, {}), **table, "name": name}
        if isinstance(table := configured.get(name, {}), dict)
        else table
        for name in dict.fromkeys([*DOCUMENTED, *configured])
    }
