"""Cuts the body of a page into raw records, one slice each, whatever is in a record."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, NoReturn

import msgspec

from pipelines.core.errors import UnexpectedAnswer
from pipelines.core.text import printable

NO_RECORD = msgspec.Raw(b"")
CLOSING = {b"{": b"}", b"[": b"]"}
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
        decoded = _decoder(maximum).decode(body)
        records = _records(decoded.data)
        pagination = decoded.pagination
    except msgspec.ValidationError as error:
        _refuse(str(error))
    except (msgspec.DecodeError, RecursionError) as error:
        records, pagination = _parse_odd_page(body, maximum, str(error))
    if maximum is not None and len(records) > maximum:
        _refuse(f"it has more than {maximum:,} records, but at most {limit:,} were requested")
    return ParsedPage(
        records, pagination.limit, pagination.offset, pagination.has_more, pagination.next_offset
    )


@lru_cache(maxsize=8)
def _decoder(maximum: int | None) -> msgspec.json.Decoder[Any]:
    """Return a decoder that creates one record more than the maximum, and skips those behind.

    An array decoded as a structure of so many fields: a constraint on the length of a list would
    be checked after the whole list is in memory.
    """
    if maximum is None:
        return msgspec.json.Decoder(_Envelope)
    fields = [(f"r{number}", msgspec.Raw, NO_RECORD) for number in range(maximum + 1)]
    head = msgspec.defstruct("Head", fields, array_like=True)
    return msgspec.json.Decoder(
        msgspec.defstruct("Envelope", [("data", head), ("pagination", _Pagination)])
    )


def _records(data: list[msgspec.Raw] | msgspec.Struct) -> list[bytes]:
    raws = data if isinstance(data, list) else msgspec.structs.astuple(data)
    return [bytes(raw) for raw in raws if raw is not NO_RECORD]


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
    if records == [b""]:
        records = []
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
