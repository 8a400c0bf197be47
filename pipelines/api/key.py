"""The key of a stream's records: configured, else pinned, else found by its name in a first scan.

A candidate is a top-level field called `id`, `<singular>Id` or `<singular>_id`, a scalar, that
tells the records of that scan apart (candidates). Where none does, the whole record identifies
itself.
"""

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
    def known_name(self) -> str | None:
        """The key where it is known; None is the whole record."""
        return self.candidates[0] if self.candidates else None


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
    whole, single = _decoders(name)
    try:
        found = [record.key for record in whole.decode(body).data]
    except UNREADABLE:  # a record that cannot be read leaves the others their keys
        found = [_key(single, record) for record in page.records(body)]
    return [None if each is msgspec.UNSET else _spelled(bytes(each)) for each in found]


Decoder = msgspec.json.Decoder[Any]


@lru_cache
def _decoders(name: str) -> tuple[Decoder, Decoder]:
    """Return what reads one field of a page's records, and of a record by itself."""
    record = msgspec.defstruct(
        "Record", [("key", msgspec.Raw, msgspec.UNSET)], rename={"key": name}
    )
    whole = msgspec.defstruct("Page", [("data", list[record])])  # type: ignore[valid-type]
    return msgspec.json.Decoder(whole), msgspec.json.Decoder(record)


def _key(decoder: Decoder, record: msgspec.Raw) -> Any:
    try:
        return decoder.decode(record).key
    except UNREADABLE:
        return msgspec.UNSET


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
