"""A home in which some records contain a name that is to be erased."""

import json
from collections.abc import Callable
from pathlib import Path

from pipelines.app.maintenance import erase_records, rollback
from pipelines.app.nightly import build_with_books
from pipelines.versions import erase as erasing
from pipelines.warehouse.version_files import Version
from tests.archive.scans import decompressed
from tests.versions.homes import Reading, Record, Stores, goes_on_from, publish_ten, read, usage

NAME = "Ada Lövelace"
OTHERS = usage(*range(1, 11))
WITH_NAME: list[Record] = [
    {"id": "t1", "name": NAME},
    {"id": "t2", "buyer": {"name": NAME}},
    {"id": "t3", "lines": [{"n": 1}, {"name": NAME}]},
    {"id": "t4", "tags": ["x", NAME]},
    {"id": "t5", "amount": NAME},  # in `_extra`: it fits no column of amounts
    {"name": NAME},  # in quarantine: it has no key
    {"id": NAME},
]


def erase(stores: Stores, identifier: str = NAME, confirm: Callable[[], object] = dict) -> int:
    request = erasing.ErasureRequest(identifier, "they asked", force=True)
    return len(erase_records(stores, request, repr, confirm))


def load(stores: Stores, *ids: int, amount: str = "1.10") -> str:
    """Read and publish a list; return its scan."""
    scan_id = read(stores, Reading(usage(*ids, amount=amount)))
    build_with_books(stores)
    return scan_id


def roll_back(stores: Stores, number: int) -> Version | None:
    rollback(stores, number, "wrong")
    return stores.warehouse.published()


def files_with(home: Path, text: str = NAME) -> list[str]:
    """Return the files of a home that contain a text; scan files are decompressed."""
    spellings = (text.encode(), json.dumps(text)[1:-1].encode())
    found = []
    for file in home.rglob("*"):
        if file.is_file() and not file.is_symlink():
            content = decompressed(file) if ".jsonl.zst" in file.name else file.read_bytes()
            found += [file.name] if any(each in content for each in spellings) else []
    return sorted(found)


@goes_on_from(publish_ten)
def publish_names(stores: Stores) -> None:
    """Publish versions with the name behind one without it."""
    for records in ([*OTHERS, *WITH_NAME], [*usage(*range(1, 12)), *WITH_NAME[1:]]):
        read(stores, Reading(records))
        build_with_books(stores)
