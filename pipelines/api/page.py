"""One page of a list: the envelope read and checked, the records left as the bytes they are."""

from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from pipelines.api.problem import UNREADABLE, cleaned
from pipelines.errors import ContractBroken, Unavailable


class Pagination(msgspec.Struct, frozen=True):
    """Paging metadata (Pagination envelope), in records."""

    limit: int
    offset: int
    has_more: bool
    next_offset: int | None = None


class _Envelope(msgspec.Struct):
    data: list[msgspec.Raw]
    pagination: Pagination


_envelope = msgspec.json.Decoder(_Envelope)


@dataclass(frozen=True)
class Answer:
    """A successful answer as received; `sent_at` and `answered_at` are aware times."""

    path: str
    body: bytes = field(repr=False)
    status: int
    request_id: str | None
    rate_limit: dict[str, str]
    sent_at: datetime
    answered_at: datetime


@dataclass(frozen=True)
class Page:
    """A page of a list: where it stands, how many records it holds, and the answer itself.

    `has_more` and `next_offset` are as the page says; what they are worth is the chain's to judge.
    """

    offset: int
    limit: int
    rows: int
    has_more: bool
    next_offset: int | None
    answer: Answer


def records(body: bytes) -> list[msgspec.Raw]:
    """Return the records of an archived page, each as its own JSON text."""
    return _envelope.decode(body).data


def read(answer: Answer, offset: int) -> Page:
    """Read a page that was asked for at `offset`.

    Raises Unavailable for a body that may be whole the next time, ContractBroken for one that
    says something the interface document rules out.
    """
    where = f"{answer.path} at offset {offset}"
    try:
        answer.body.decode()
        envelope = _envelope.decode(answer.body)
    except (msgspec.ValidationError, RecursionError) as error:
        raise Unavailable(f"{where}: no page of a list: {error}", tries=2) from None
    except UNREADABLE:
        begin = cleaned(answer.body[:80].decode(errors="replace"))
        raise Unavailable(f"{where}: answer is not whole JSON: {begin}", tries=3) from None
    paging = envelope.pagination
    if paging.offset != offset:
        raise ContractBroken(f"{where}: the page says that it is at offset {paging.offset}")
    rows, more = len(envelope.data), paging.has_more
    return Page(offset, paging.limit, rows, more, paging.next_offset, answer)
