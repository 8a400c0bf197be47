"""Puts rows into the page: compressed JSON as text, until the file has its size.

A browser reads it with `DecompressionStream`. What has no room is counted.
"""

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from pipelines.core.text import counted, printable
from pipelines.finance.reports.listing import Detail

# Of the whole file. Mail programs refuse larger ones once they are encoded for mail.
MOST_BYTES: Final = 3_000_000
# What the tag of a list takes in the page, at most.
TAG_BYTES: Final = 500
# Below this many rows of a list that has no room, none of them is of use.
FEWEST_ROWS: Final = 50


@dataclass(frozen=True)
class Packed:
    """A list of the page: `text` is its JSON, compressed, as base64. `rows` are in it."""

    name: str
    title: str
    rows: int
    is_part: bool
    text: str


def pack(details: Iterable[Detail], taken: int, digits: dict[str, int]) -> list[Packed]:
    """Return the lists that have room in a page; `taken` are the bytes of the page without them.

    `digits` are those of each currency behind the point.
    """
    room = MOST_BYTES - taken
    packed = []
    for detail in details:
        each = _fit(detail, room // detail.listing.share, digits)
        room -= len(each.text) + TAG_BYTES
        packed.append(each)
    return packed


def _fit(detail: Detail, room: int, digits: dict[str, int]) -> Packed:
    """Return as many of the first rows of a list as have room."""
    rows = detail.rows
    packed = _pack(detail, rows, digits)
    while len(packed.text) + TAG_BYTES > room and rows:
        # Rows differ in size: a little less than the share that has room.
        rows = int(rows * max(0, room - TAG_BYTES) / len(packed.text) * 0.97)
        if rows < FEWEST_ROWS:
            rows = 0
        packed = _pack(detail, rows, digits)
    return packed


def _pack(detail: Detail, rows: int, digits: dict[str, int]) -> Packed:
    listing = detail.listing
    document = {
        "name": listing.name,
        "title": listing.title,
        "note": listing.note,
        "columns": [asdict(column) for column in listing.columns],
        "rows": rows,
        "left_out": _left_out(detail, rows),
        "command": listing.command,
        "has_sums": listing.has_sums,
        "filters": listing.filters,
        "digits": digits,
        "currencies": [currency for currency in digits if currency],
        "data": {name: _column(values[:rows]) for name, values in detail.columns.items()},
    }
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    # Without a time: the same rows make the same page.
    small = gzip.compress(text.encode(), compresslevel=9, mtime=0)
    return Packed(
        listing.name, listing.title, rows, bool(listing.parent), b64encode(small).decode()
    )


def _left_out(detail: Detail, rows: int) -> str:
    """Return how many rows have no room, with their noun; empty if all have."""
    left_out = detail.total - rows
    return counted(left_out, "row") if left_out else ""


def _column(values: list[Any]) -> dict[str, list[Any]]:
    """Return the different values of a column, and for each row which of them it has.

    If most rows have a value of their own, these are the values of the rows, which is shorter.
    """
    places: dict[Any, int] = {}
    for value in values:
        places.setdefault(value, len(places))
    if 2 * len(places) > len(values):
        return {"values": [_visible(value) for value in values]}
    shown = [_visible(value) for value in places]
    return {"values": shown, "rows": [places[value] for value in values]}


def _visible(value: Any) -> Any:
    """Make control characters of foreign text visible."""
    is_foreign = isinstance(value, str) and not value.isprintable()
    return printable(value) if is_foreign else value
