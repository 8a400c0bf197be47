"""The lists that are read: the three of the interface document, and more by configuration."""

from functools import partial
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from pipelines.config import values

MOST_RECORDS: Final = 500  # a page, as the interface document has it
DOCUMENTED: Final[dict[str, dict[str, Any]]] = {
    "partners": {"path": "/v2/partners"},
    "usage": {"path": "/v2/usage", "limit": MOST_RECORDS},
    "billing": {"path": "/v2/billing"},
}


class Stream(values.Table):
    """One list of the service: `[streams.<name>]` of settings.toml over its defaults."""

    name: values.StreamName
    path: values.ListPath
    """path of the list; preset for the three documented lists"""
    surface: values.Surface = "partner"
    """partner or merchant"""
    limit: int = Field(default=100, ge=1, le=MOST_RECORDS)
    """records per page; 500 for `usage`"""
    key: str | None = None
    """field that identifies a record; default: the first scan detects it"""
    allow_empty: bool = False
    """load an empty list without approval"""
    max_deleted_share: float = Field(default=0.1, ge=0, le=1)
    """share of rows that may be deleted without approval"""
    contract: values.Contract = "evolve"
    """new columns and wider types: evolve, freeze or discard"""


Streams = Annotated[
    dict[str, Stream], BeforeValidator(partial(values.name_tables, known=DOCUMENTED))
]
