"""The items of a page, each as its own text, whatever is in them.

For a page that no strict reader takes whole: taken apart by its brackets, so that one record that
cannot be read costs that record and not the page. Not here: what is wrong with it (record).
"""

import json
import re
from collections.abc import Collection, Iterator
from itertools import pairwise

import msgspec

# Brackets without end do not fill the memory.
DEEPEST = 1_000_000
CLOSER = {b"{": b"}", b"[": b"]"}
# Brackets of the list (inside the page's own) and commas in it.
CUTS = {(1, b"["), (1, b"]"), (2, b",")}
# A lone quote is a string that never ends.
TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{},:"]', re.DOTALL)


class NoPage(Exception):
    """A body is no page of a list, not even with wrong records."""


def split(body: bytes) -> tuple[bytes, list[msgspec.Raw]]:
    """Return a page's body without its records, and each record's text, whatever is in it.

    For a page that no reader takes whole. Raises NoPage where anything but NaN, Infinity, half
    a surrogate pair or nesting without end is wrong with it: then it is no page, not a page with a
    wrong record.
    """
    cuts = _cuts(body)
    texts = [body[start + 1 : stop].strip() for start, stop in pairwise(cuts)]
    if texts == [b""]:
        texts = []
    for text in texts:
        _refuse_no_json(text)
    shell = body[: cuts[0] + 1] + body[cuts[-1] :]
    return shell, [msgspec.Raw(text) for text in texts]


def blanked(body: bytes, rows: Collection[int]) -> bytes:
    """Return a page with null in the place of some of its items, every other byte as it was."""
    cuts = _cuts(body)
    parts = [body[: cuts[0]]]
    for row, (start, stop) in enumerate(pairwise(cuts)):
        parts.append(body[start : start + 1] + b"null" if row in rows else body[start:stop])
    return b"".join([*parts, body[cuts[-1] :]])


def _cuts(body: bytes) -> list[int]:
    """Return the places of the brackets around the items of `data` and the commas between them."""
    cuts = []
    name = last = b""
    for depth, token, place in _tokens(body):
        if depth == 1 and token == b":":
            name = last
        elif name == b'"data"' and (depth, token) in CUTS:
            cuts.append(place)
        last = token
    if not cuts:
        raise NoPage("no list of data")
    return cuts


def _tokens(body: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Yield strings and marks, how many brackets are around them, and where they begin.

    Raises NoPage where brackets do not fit, and for a lone quote.
    """
    expected: list[bytes] = []
    for token in TOKEN.finditer(body):
        found = token[0]
        if found in CLOSER.values() and (not expected or expected.pop() != found):
            raise NoPage("a bracket that does not fit")
        yield len(expected), found, token.start()
        if found in CLOSER:
            expected.append(CLOSER[found])
        if found == b'"' or len(expected) > DEEPEST:
            raise NoPage("a string or a nesting without end")
    if expected:
        raise NoPage("not whole")


def _refuse_no_json(text: bytes) -> None:
    try:
        json.loads(text.decode(), parse_int=str)
    except ValueError as error:
        raise NoPage(str(error)) from None
    except RecursionError:
        return  # its brackets fit; that it is too deep is said of the record
