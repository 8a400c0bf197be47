"""Versions to test with, and a full disk."""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.warehouse.version_files import Version, Warehouse


def add_version(warehouse: Warehouse, number: int) -> Version:
    """Publish a version whose table `numbers` has one row more than the one before."""
    with warehouse.begin(warehouse.published(), number) as db:
        db.execute("CREATE TABLE IF NOT EXISTS numbers (n INTEGER)")
        db.execute("INSERT INTO numbers VALUES (?)", [number])
        version = warehouse.commit(db, number)
    warehouse.link(version)
    return version


def numbers(warehouse: Warehouse, number: int | None = None) -> list[int]:
    with warehouse.open(number) as reader:
        rows = reader.execute("SELECT numbers.n FROM numbers ORDER BY numbers.n").fetchall()
    return [row[0] for row in rows]


@contextmanager
def full_disk(largest_file: int = 0) -> Iterator[None]:
    """Let this process write no file above a size (bytes): it meets what a full disk does."""
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    is_without_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # a part of a file would remain, and fail other programs
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, unlimited[1]))
    try:
        yield
    finally:
        sys.dont_write_bytecode = is_without_bytecode
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
