"""The values that `read_list` exchanges with its driver: requests, pages, a proof at the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pipelines.core.completeness import ListMemory, Method, Ranges

ALGORITHM_VERSION = 1  # a scan file of another version cannot be resumed


class Purpose(StrEnum):
    """Why a page is requested. LENGTH and BEHIND are sent while no other request is in flight."""

    PAGE = "page"
    HEAD = "head"
    LENGTH = "length"
    BEHIND = "behind"


ALONE = frozenset({Purpose.LENGTH, Purpose.BEHIND})


class PageRequest(NamedTuple):
    """One request for a page."""

    offset: int
    limit: int
    purpose: Purpose = Purpose.PAGE


class RowRef(NamedTuple):
    """One row of a page, as far as reading needs it.

    `digest` is the first 8 bytes of the SHA-256 of the raw record. `candidates` holds, in the order
    of `Page.fields`, the JSON text of the record's value for each field that may be the key; None
    where the value is null or missing.
    """

    digest: bytes
    candidates: tuple[str | None, ...]


@dataclass(frozen=True)
class Page:
    """One answer.

    `number` is the number of its exchange in the scan file. `limit` is the page size the service
    says it used. `sent` and `received` order requests and answers among each other; they are not
    times. `fields` are the names of the key candidates, the same for every page of a scan.
    """

    number: int
    request: PageRequest
    rows: Sequence[RowRef]
    fields: tuple[str, ...]
    limit: int
    has_more: bool
    next_offset: int | None
    sent: int
    received: int


class Stop(NamedTuple):
    """Sent instead of a page when the driver's time is up; the generator must end with a proof."""

    reason: str


class Ask(NamedTuple):
    """The request that must be answered next, and those that are likely to follow it."""

    request: PageRequest
    likely_next: tuple[PageRequest, ...] = ()


@dataclass(frozen=True)
class Proof:
    """What `read_list` returns: a Completeness without times and the number of requests."""

    complete: bool
    method: Method
    rows: int
    repeated: int
    not_seen: int | None
    reason: str
    used: dict[int, Ranges]
    conflicting: dict[int, Ranges]
    memory: ListMemory
