"""Here: the object that says which files of a home on a bucket are published, and its format.

It names all of them, so whoever reads it sees files that were published together. Not here: how it
is changed (cached) and followed on other machines (pull).
"""

from datetime import datetime
from typing import Final

import msgspec

from pipelines.core.errors import NewerFormat, StorageFailed

POINTER: Final = "published.json"
FORMAT: Final = 1
LINKS: Final = ("warehouse.duckdb", "books.duckdb")
# What is published is in one of these. A name is never used again.
FOLDERS: Final = ("versions", "books")


class PublishedFile(msgspec.Struct, frozen=True):
    """A published file: its name below the home, digest and size, and since when it is."""

    file: str
    sha256: str
    bytes: int
    since: datetime


class Pointer(msgspec.Struct, frozen=True):
    """What is published, by the name of its link.

    `erasures` counts when records were erased: copies of before may have them. `change` is
    different after every change, so that a process knows its own.
    """

    format: int = FORMAT
    published: dict[str, PublishedFile] = {}
    erasures: int = 0
    change: str = ""


class _Format(msgspec.Struct):
    format: int = 1


def encode(pointer: Pointer) -> bytes:
    """Return the bytes of the object."""
    return msgspec.json.format(msgspec.json.encode(pointer))


def decode(data: bytes, place: str) -> Pointer:
    """Return what an object says. Raises NewerFormat, StorageFailed for what is no pointer."""
    try:
        number = msgspec.json.decode(data, type=_Format).format
        if number > FORMAT:
            raise NewerFormat(
                f"{place}/{POINTER} has format {number}, and this partner-sync reads formats up "
                f"to {FORMAT}: a newer one wrote it. Nothing was changed.",
                "Install the newer partner-sync.",
            )
        return msgspec.json.decode(data, type=Pointer)
    except msgspec.DecodeError as error:
        raise StorageFailed(
            f"{place}/{POINTER} is damaged: {error}. Nothing was changed. Files of versions and "
            "books are not affected.",
            "Restore an older state of this object. Without any, delete it, then run "
            "`partner-sync versions build`, which publishes the newest version again.",
        ) from None
