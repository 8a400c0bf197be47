"""Paging: the envelope of every list, its bounds, and its five rules ("Pagination parameters").

Here: limit and offset, and the page as bytes joined from encoded records. Not here: the records.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticCustomError

from sandbox.data.listing import Pageable

_INTEGER = re.compile(r"-?[0-9]+")


@dataclass(frozen=True)
class Bounds:
    """The default and the largest ``limit`` of one list."""

    default: int
    most: int


class UnknownBoundError(ValueError):
    """A text does not say which list has pages of which size."""


def read_most(texts: Iterable[str], lists: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Read each ``LIST=RECORDS``.

    Raises:
        UnknownBoundError: there is no such list, or RECORDS is no positive integer.
    """
    known, found = tuple(lists), []
    for text in texts:
        name, _, records = text.partition("=")
        if name not in known or not _INTEGER.fullmatch(records) or int(records) < 1:
            raise UnknownBoundError(f"{text} is not LIST=RECORDS; lists: {', '.join(known)}")
        found.append((name, int(records)))
    return tuple(found)


def integer(text: Any) -> Any:
    """Refuse what is no plain decimal integer: pydantic alone would take "1.0", " 1" and "1_0".

    Raises:
        PydanticCustomError: the text is something else.
    """
    if isinstance(text, str) and not _INTEGER.fullmatch(text):
        raise PydanticCustomError("integer", "Input should be an integer")
    return text


def page(listing: Pageable, limit: int, offset: int) -> bytes:
    """Write the page of ``limit`` records from ``offset`` on, in the envelope."""
    current = listing.now()  # one state for the whole page: it is atomic
    following = offset + limit
    has_more = following < current.count
    pagination = {
        "limit": limit,
        "offset": offset,
        "has_more": has_more,
        "next_offset": following if has_more else None,  # rules 1 and 2
        "prev_offset": max(0, offset - limit) if offset else None,  # rule 3
    }
    data = b",".join(current.rows(offset, following))  # rule 4: beyond the end there is nothing
    return b'{"data":[%b],"pagination":%b}' % (data, json.dumps(pagination).encode())
