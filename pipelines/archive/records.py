"""Cuts the body of a page into raw records, one slice each, whatever is in a record.

Here: bytes of records and their digests. Not here: what is in a record (`pipelines/load`,
`pipelines/extract/key.py`), and what is around the records (`envelope.py`).
"""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import islice, pairwise

import msgspec
import numpy as np
import numpy.typing as npt

from pipelines.archive.envelope import (
    NO_PAGINATION,
    NULL_DATA,
    CutPage,
    ParsedPage,
    read_envelope,
)
from pipelines.core.errors import UnexpectedAnswer
from pipelines.core.text import printable

ANY_LIMIT = 2**40
# For a search, it contains nothing, not even a `u`: otherwise erasing would never end.
ERASED_RECORD = b"null"
# Above it, a decoder that has all records in memory before they are counted is not used.
MANY_COMMAS = 300_000
# The begin of the records, brackets and commas; and strings, so that those in them do not count.
TOKEN = re.compile(rb'"data"\s*:\s*\[|"(?:[^"\\]|\\.)*+"|[\[\]{},]', re.DOTALL)
Digests = npt.NDArray[np.uint64]
DEPTH_CHANGES = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
# In the object of the page, and in its array `data`.
DEPTH_OF_RECORDS = 2


def parse_page(body: bytes, limit: int = ANY_LIMIT) -> ParsedPage:
    """Cut a page into records, without decoding them.

    A record that no strict reader accepts (NaN, half a surrogate pair, invalid UTF-8, a depth of
    thousands) is cut out like any other. `limit` is the one that was asked for; with it, a page
    with far more records is refused before memory is spent on them.

    Raises:
        UnexpectedAnswer: the body is not an object with an array `data`, or it has no `pagination`
            and as many records as were asked for, so that it is no page.
    """
    most = 2 * limit + 100
    try:
        if len(body) <= MANY_COMMAS or body.count(b",") <= max(most, MANY_COMMAS):
            with suppress(msgspec.DecodeError, RecursionError):
                page = read_envelope(body)
                if len(page.data) <= most:
                    return _paged(page, limit)
        return _paged(_cut(body, most), limit)
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise UnexpectedAnswer(
            f"The answer is not a page of a list: {printable(error)}. None of its records is used.",
            "Compare the stream's path with the interface document, then run `partner-sync sync`.",
        ) from None


def join_digests(raws: Sequence[bytes]) -> bytes:
    """Return the first 8 bytes of the SHA-256 of each raw record, joined."""
    # Of the raw bytes, so that neither a newer DuckDB nor a schema that grows changes them.
    return b"".join([sha256(raw).digest()[:8] for raw in raws])


def split_digests(joined: bytes) -> Digests:
    """Return joined digests as numbers."""
    return np.frombuffer(joined, ">u8").astype(np.uint64)


def erase_records(body: bytes, rows: Collection[int]) -> bytes:
    """Return a page with null in place of some records, so that the others keep their places."""
    cuts = list(_cuts(body))
    # From the last one on: the cuts before a record that is replaced stay where they are.
    for row in sorted(rows, reverse=True):
        body = body[: cuts[row] + 1] + ERASED_RECORD + body[cuts[row + 1] :]
    return body


def _paged(page: ParsedPage, limit: int) -> ParsedPage:
    """Return a page. Raises ValueError where nothing tells that it is only a part of a list.

    Some services leave `pagination` out on the last page, which is short. An error may have status
    200, and null for `data`.
    """
    if limit < ANY_LIMIT and {NULL_DATA, NO_PAGINATION}.issubset(page.deviations):
        raise ValueError(f"{NULL_DATA}, and {NO_PAGINATION}")
    is_silent = page.pagination.limit is None and page.pagination.has_more is None
    if is_silent and limit <= len(page.data):
        raise ValueError("it has no `pagination`, and as many records as were requested")
    return page


def _cut(body: bytes, most: int) -> ParsedPage:
    """Cut a page by its brackets: one record that is not JSON does not cost the others."""
    cuts = [*islice(_cuts(body), most + 2)]
    if len(cuts) > most + 1:
        raise ValueError(f"it has more than {most:,} records, twice what was requested plus 100")
    if not cuts:
        raise ValueError("it is no object with an array `data`")
    records = [body[start + 1 : end].strip() for start, end in pairwise(cuts)]
    # An empty array has two brackets and no record between them.
    if records == [b""]:
        records = []
    for record in records:
        # The brackets of a record that is too deep match; that record alone cannot be loaded.
        with suppress(RecursionError):
            json.loads(record.decode(errors="replace"), parse_int=str, strict=False)
    page = read_envelope(body[: cuts[0] + 1] + body[cuts[-1] :])
    data = [msgspec.Raw(record) for record in records]
    return CutPage(data, page.pagination, page.deviations)


def _cuts(body: bytes) -> Iterator[int]:
    """Yield the positions of the brackets around the records of `data` and of the commas."""
    depth = 0
    is_data = False
    for match in TOKEN.finditer(body):
        token = match[0]
        if depth == 1 and token.startswith(b'"data"') and token.endswith(b"["):
            is_data = True
            yield match.end() - 1
        elif is_data and depth == DEPTH_OF_RECORDS and token in {b",", b"]"}:
            is_data = token == b","
            yield match.start()
        depth += DEPTH_CHANGES.get(token[-1:], 0)
