"""One page of a list: the envelope read and checked, the records left as the bytes they are.

Not here: what is in a record (record), taking a page apart that no reader takes whole (items).
"""

import re
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from pipelines.api import items
from pipelines.api.items import NoPage
from pipelines.api.problem import UNREADABLE, cleaned, redacted
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
    """A successful answer as received; `sent_at` and `answered_at` are aware times.

    `rate_limit` holds the three rate-limit headers and `age`, the seconds spent in a cache (RFC
    9111), as sent and in lower case; a header that was not sent is not in it.
    """

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
    """Return the records of a page, each as its own JSON text; some may not be readable.

    For a page that `read` has accepted: it never fails for what a record holds.
    """
    return _opened(body).data


def read(answer: Answer, offset: int) -> Page:
    """Read a page that was asked for at `offset`.

    Raises Unavailable for a body that may be whole the next time, ContractBroken for one that
    says something the interface document rules out.
    """
    where = f"{answer.path} at offset {offset}"
    envelope = _envelope_of(answer.body, where)
    paging = envelope.pagination
    if paging.offset != offset:
        raise ContractBroken(f"{where}: the page says that it is at offset {paging.offset}")
    rows, more = len(envelope.data), paging.has_more
    return Page(offset, paging.limit, rows, more, paging.next_offset, answer)


def _opened(body: bytes) -> _Envelope:
    """Take a page apart; raise what msgspec raises, or NoPage, where it is none."""
    try:
        return _envelope.decode(body)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, RecursionError):
        shell, texts = items.split(body)
        envelope = _envelope.decode(shell)
        envelope.data = texts
        return envelope


def _envelope_of(body: bytes, where: str) -> _Envelope:
    try:
        body.decode()
        return _opened(body)
    except msgspec.ValidationError as error:
        raise Unavailable(f"{where}: {_misshapen(error)}", tries=2) from None
    except (*UNREADABLE, NoPage):
        begin = redacted(body)
        # A page of HTML is a portal's or a proxy's, and stays; half a JSON may be whole next time.
        tries = 2 if begin.startswith("<") else 3
        raise Unavailable(f"{where}: answer is not whole JSON", tries=tries, said=begin) from None


def _misshapen(error: msgspec.ValidationError) -> str:
    """Say what a JSON body lacks of a page."""
    words = str(error)
    if re.search(r"required field `pagination`|Expected `object`.*`\$\.pagination`$", words):
        return "page has no pagination object"
    return f"no page of a list: {cleaned(words)}"
