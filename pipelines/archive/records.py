"""Cuts the body of a page into raw records, one slice each, whatever is in a record."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, NamedTuple, NoReturn

import msgspec

from pipelines.core.errors import UnexpectedAnswer
from pipelines.core.text import printable

CLOSING = {b"{": b"}", b"[": b"]"}
# Above it, a decoder that has all records in memory before they are counted is not used.
MANY_COMMAS = 300_000
DEEPEST = 100_000  # brackets; more is an attack on memory, not a record
# A lone quote is a string without an end.
TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{},:"]', re.DOTALL)

Position = Annotated[int, msgspec.Meta(ge=0)]


class ParsedPage(NamedTuple):
    """A page: the bytes of each record as received, and what the service says of the page."""

    records: list[bytes]
    limit: int
    offset: int
    has_more: bool
    next_offset: int | None


class _Pagination(msgspec.Struct):
    limit: Annotated[int, msgspec.Meta(ge=1)]
    offset: Position
    has_more: bool
    next_offset: int | None = None


class _Envelope(msgspec.Struct):
    data: list[msgspec.Raw]
    pagination: _Pagination


def most_records(limit: int) -> int:
    """Return how many records a page may have that was requested with this limit."""
    return 2 * limit + 100


def parse_page(body: bytes, limit: int | None = None) -> ParsedPage:
    """Cut a page into records, without decoding them.

    A record that no strict reader accepts (NaN, half a surrogate pair, invalid UTF-8, a depth of
    thousands) is cut out like any other. `limit` is the one that was asked for; with it, a page
    with far more records is refused before memory is spent on them.

    Raises:
        UnexpectedAnswer: the body is not an object with an array `data` and a `pagination`.
    """
    maximum = None if limit is None else most_records(limit)
    try:
        if maximum is not None and body.count(b",") > MANY_COMMAS:
            raise msgspec.DecodeError("too many values")  # noqa: TRY301 - cut with a limit
        page = msgspec.json.decode(body, type=_Envelope)
        records, pagination = [bytes(raw) for raw in page.data], page.pagination
    except msgspec.ValidationError as error:
        _refuse(str(error))
    except (msgspec.DecodeError, RecursionError) as error:
        records, pagination = _parse_odd_page(body, maximum, str(error))
    if maximum is not None and len(records) > maximum:
        _refuse(f"it has more than {maximum:,} records, but at most {limit:,} were requested")
    return ParsedPage(
        records, pagination.limit, pagination.offset, pagination.has_more, pagination.next_offset
    )


def _refuse(reason: str) -> NoReturn:
    raise UnexpectedAnswer(
        f"The answer is not a page of a list: {printable(reason)}. None of its records is used.",
        "Compare the stream's path with the interface document, then run `partner-sync sync`.",
    ) from None


def _parse_odd_page(
    body: bytes, maximum: int | None, reason: str
) -> tuple[list[bytes], _Pagination]:
    """Cut a page by its brackets: one record that is not JSON does not cost the others."""
    cuts: list[int] = []
    for cut in _cuts(body):
        cuts.append(cut)
        if maximum is not None and len(cuts) > maximum + 2:
            _refuse(f"it has more than {maximum:,} records")
    if not cuts:
        _refuse(reason)
    records = [body[start + 1 : end].strip() for start, end in pairwise(cuts)]
    records = [] if records == [b""] else records
    _check_odd_records(records)
    try:
        shell = msgspec.json.decode(body[: cuts[0] + 1] + body[cuts[-1] :], type=_Envelope)
    except (msgspec.DecodeError, RecursionError) as error:
        _refuse(str(error))
    return records, shell.pagination


def _cuts(body: bytes) -> Iterator[int]:
    """Yield the positions of the brackets around the records of `data` and of the commas."""
    name = last = b""
    for depth, token, position in _tokens(body):
        if depth == 1 and token == b":":
            name = last
        elif name == b'"data"' and (depth, token) in {(1, b"["), (1, b"]"), (2, b",")}:
            yield position
        last = token


def _tokens(body: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Yield strings and marks with the number of brackets around them and their position."""
    expected: list[bytes] = []
    for match in TOKEN.finditer(body):
        token = match[0]
        if token in CLOSING.values() and (not expected or expected.pop() != token):
            _refuse("its brackets do not match")
        yield len(expected), token, match.start()
        if token in CLOSING:
            expected.append(CLOSING[token])
        if token == b'"' or len(expected) > DEEPEST:
            _refuse("a string or a nesting in it does not end")
    if expected:
        _refuse("its end is missing")


def _check_odd_records(records: Sequence[bytes]) -> None:
    """Refuse what is no JSON value even for a lenient reader: the body is damaged then."""
    for number, record in enumerate(records, 1):
        try:
            json.loads(record.decode(errors="replace"), parse_int=str, strict=False)
        except ValueError as error:
            _refuse(f"record {number} is not JSON ({error})")
        except RecursionError:
            continue  # its brackets match; the record alone is too deep
