"""The key of a stream's records: configured, else pinned, else found by its name in a first scan.

A candidate is a top-level field called `id`, `<singular>Id` or `<singular>_id` that is present, a
scalar, not null and unique in every page of that scan. Where none holds, the whole record
identifies itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_PREC, Context, Decimal
from functools import lru_cache
from typing import Any

import msgspec
from sqlalchemy import Engine

from pipelines.api import page
from pipelines.api.problem import UNREADABLE
from pipelines.settings import Settings
from pipelines.state import registry
from pipelines.streams.base import Stream

NUMBER = frozenset(b"-0123456789")
FRACTION = frozenset(b".eE")
EXACT = Context(prec=MAX_PREC)


@dataclass(frozen=True)
class Identity:
    """The fields that may tell a stream's records apart, the likeliest first.

    A `known` one is not doubted: a record without it is set aside.
    """

    candidates: tuple[str, ...]
    known: bool = False

    @property
    def names(self) -> tuple[str | None, ...]:
        """What to try one after the other; None is the whole record."""
        if self.known and self.candidates:
            return self.candidates[:1]
        return (*self.candidates, None)

    def fits(self, keys: Sequence[bytes | None]) -> bool:
        """Whether a page's keys leave a candidate standing: all there, none twice."""
        return self.known or (None not in keys and len(set(keys)) == len(keys))


def search(ledger: Engine, settings: Settings, connection: str, stream: Stream) -> Identity:
    """Take the configured key, else the pinned one, else look among the likely names."""
    configured = settings.stream(stream.name).key
    if configured is not None:
        return Identity((configured,), known=True)
    pinned = registry.pin(ledger, connection, stream.name)
    if pinned is None:
        return Identity(stream.key_candidates)
    return Identity((pinned.key,) if pinned.key else (), known=True)


def keys(body: bytes, name: str) -> list[bytes | None]:
    """Return what a field says in each record of a page; None where it identifies nothing."""
    decoder = _decoder(name)
    return [_key(decoder, record) for record in page.records(body)]


@lru_cache
def _decoder(name: str) -> msgspec.json.Decoder[Any]:
    field = ("key", msgspec.Raw, msgspec.UNSET)
    return msgspec.json.Decoder(msgspec.defstruct("Record", [field], rename={"key": name}))


def _key(decoder: msgspec.json.Decoder[Any], record: msgspec.Raw) -> bytes | None:
    try:
        found = decoder.decode(record).key
    except UNREADABLE:
        return None
    return None if found is msgspec.UNSET else _spelled(bytes(found))


def _spelled(lexeme: bytes) -> bytes | None:
    """Return a scalar in one spelling, every digit kept: 1.50 is 1.5; None for what is none."""
    try:
        if lexeme.startswith(b'"'):
            text = b"\\" in lexeme
            return msgspec.json.encode(msgspec.json.decode(lexeme)) if text else lexeme
        if lexeme[0] not in NUMBER:
            return None
        whole = FRACTION.isdisjoint(lexeme)
        return lexeme if whole else str(EXACT.normalize(Decimal(lexeme.decode()))).encode()
    except (*UNREADABLE, ArithmeticError):
        return lexeme
