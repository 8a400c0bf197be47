"""What a record says, in one spelling: how records without a key are told apart and compared."""

import json
from decimal import MAX_PREC, Context, Decimal

import msgspec

from pipelines.api import page

EXACT = Context(prec=MAX_PREC)  # the default would round at 28 digits
CANONICAL = msgspec.json.Encoder(order="sorted", decimal_format="number")


def contents(body: bytes) -> list[bytes]:
    """Return what tells a page's records apart where no field does: all that they say.

    A record that nothing can read is told apart by its bytes.
    """
    return [content(bytes(text)) for text in page.records(body)]


def content(text: bytes) -> bytes:
    """Return a record in one spelling; as it is where nothing can read it."""
    try:
        return canonical(text)
    except (ValueError, ArithmeticError, RecursionError, TypeError):
        return text


def canonical(text: bytes) -> bytes:
    """Return a record in one spelling: keys sorted, numbers without trailing zeros.

    What is null stays apart from what is missing.
    """
    return CANONICAL.encode(json.loads(text, parse_float=_plain, parse_int=_plain))


def _plain(lexeme: str) -> Decimal:
    return Decimal(lexeme).normalize(EXACT)
