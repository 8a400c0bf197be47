"""The key of a stream's records: configured, else pinned, else found by its name in a first scan.

A candidate is a top-level field called `id`, `<singular>Id` or `<singular>_id` that is present, a
scalar, not null and unique in every page of that scan. Where none holds, the whole record
identifies itself.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Engine

from pipelines.errors import ContractBroken
from pipelines.settings import Settings
from pipelines.state import registry
from pipelines.streams.base import Stream


class KeySearch:
    """Drops each candidate at the first page that speaks against it; a known key is not doubted."""

    def __init__(self, candidates: Sequence[str], *, known: bool = False) -> None:
        self._candidates = list(candidates)
        self._known = known
        self._rows = 0

    @property
    def found(self) -> bool:
        """Whether the search decided something: no for a known key, and for an empty list."""
        return not self._known and self._rows > 0

    @property
    def key(self) -> str | None:
        """The likeliest candidate that holds; None where none does."""
        return self._candidates[0] if self._candidates else None

    def look(self, body: bytes) -> None:
        """Test what is left of the candidates on a page's records.

        Raises ContractBroken for a record that is no object: nothing is settled by such a list.
        """
        if self._known:
            return
        names = [f"_{number}" for number in range(len(self._candidates))]
        record = msgspec.defstruct(
            "Record",
            [(name, Any, msgspec.UNSET) for name in names],
            rename=dict(zip(names, self._candidates, strict=True)),
        )
        page = msgspec.defstruct("Page", [("data", list[record])])  # type: ignore[valid-type]
        try:
            rows = msgspec.json.decode(body, type=page).data  # type: ignore[attr-defined]
        except msgspec.ValidationError as error:
            raise ContractBroken(f"a record is no object: {error}") from None
        self._rows += len(rows)
        self._candidates = [
            candidate
            for name, candidate in zip(names, self._candidates, strict=True)
            if _identifies([getattr(row, name) for row in rows])
        ]


def _identifies(values: list[Any]) -> bool:
    scalar = all(type(value) in {str, int, float} for value in values)
    return scalar and len(set(values)) == len(values)


def search(ledger: Engine, settings: Settings, connection: str, stream: Stream) -> KeySearch:
    """Take the configured key, else the pinned one, else look among the likely names."""
    configured = settings.stream(stream.name).key
    if configured is not None:
        return KeySearch([configured], known=True)
    pinned = registry.pin(ledger, connection, stream.name)
    if pinned is None:
        return KeySearch(stream.key_candidates)
    return KeySearch([pinned.key] if pinned.key else [], known=True)
