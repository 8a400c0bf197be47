"""Versions to test with, and an analyst: another process that holds one open."""

import resource
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from sys import executable
from typing import Any

from pipelines.warehouse.duckdb_file import Version, Warehouse

# Another process: DuckDB shares one open file within a process, which would hide the lock.
HOLDER = """
import sys, duckdb
database = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "read")
if sys.argv[2] == "write":
    database.execute("CREATE TABLE scribble AS SELECT 1 AS n")
print("open", flush=True)
for _line in sys.stdin:
    print(database.execute(sys.argv[3]).fetchall()[0][0], flush=True)
"""
PIPES: dict[str, Any] = {"stdin": PIPE, "stdout": PIPE, "text": True}


def add_version(warehouse: Warehouse, number: int) -> Version:
    """Publish a version whose table `numbers` has one row more than the one before."""
    with warehouse.begin(warehouse.published(), number) as db:
        db.execute("CREATE TABLE IF NOT EXISTS numbers (n INTEGER)")
        db.execute("INSERT INTO numbers VALUES (?)", [number])
        version = warehouse.commit(db, number)
    warehouse.publish(version)
    return version


def numbers(warehouse: Warehouse, number: int | None = None) -> list[int]:
    with closing(warehouse.open(number)) as reader:
        rows = reader.execute("SELECT numbers.n FROM numbers ORDER BY numbers.n").fetchall()
    return [row[0] for row in rows]


@contextmanager
def full_disk(largest_file: int = 0) -> Iterator[None]:
    """Let this process write no file above a size (bytes): it meets what a full disk does."""
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, unlimited[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)


@contextmanager
def analyst(file: Path, access: str, query: str) -> Iterator[Callable[[], int]]:
    """Hold a file open in another process, to "read" or to "write"; yield what asks the query."""
    with Popen([executable, "-c", HOLDER, str(file), access, query], **PIPES) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def ask() -> int:
            requests.write("\n")
            requests.flush()
            return int(answers.readline())

        assert answers.readline() == "open\n"
        yield ask
        process.kill()
