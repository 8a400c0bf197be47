"""The machine of an analyst: brings what homes publish, and reads it all the time.

`python -m tests.cluster.analyst FOLDER ENDPOINT ROWS HOME...` does so until its input ends. It then
prints JSON: `reads`, `versions` (those that were seen, by home) and `failures`, as sentences. Each
version has to have all accounts, each with all its rows; one of them may have been erased.
"""

import json
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import duckdb

from pipelines.app.pull import pull
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from tests.s3_server import NAME

ACCOUNTS = 4  # of each home
PULL_SECONDS = 3.0
READ_SECONDS = 0.5
COUNTS = "SELECT count(*), count(DISTINCT _key) FROM current.usage GROUP BY _connection"


class Analyst:
    """Pulls in one thread, and reads in another."""

    def __init__(self, folder: Path, endpoint: str, rows: int, homes: list[str]) -> None:
        self._folders = {home: folder / home for home in homes}
        self._endpoint = endpoint
        self._complete = {(rows, rows), (rows - 1, rows - 1)}
        self._is_over = threading.Event()
        self._reads = 0
        self._versions = defaultdict[str, list[str]](list)
        self._with_books = set[str]()
        self._failures = list[str]()

    def work(self) -> None:
        """Pull and read until the input ends; print what was seen."""
        threads = [threading.Thread(target=each) for each in (self._pull, self._read)]
        for thread in threads:
            thread.start()
        sys.stdin.read()
        self._is_over.set()
        for thread in threads:
            thread.join()
        report = {"reads": self._reads, "versions": self._versions, "failures": self._failures}
        sys.stdout.write(json.dumps(report))

    def _pull(self) -> None:
        while not self._is_over.wait(PULL_SECONDS):
            for home, folder in self._folders.items():
                try:
                    pull(folder, f"s3://{NAME}/{home}", self._endpoint)
                except ConfigurationError:
                    """Nothing is published yet."""
                except PartnerSyncError as error:
                    self._fail(f"pull of {home}: {error}")

    def _read(self) -> None:
        while not self._is_over.wait(READ_SECONDS):
            for home, folder in self._folders.items():
                link = folder / "warehouse.duckdb"
                if not link.is_symlink():
                    continue
                version = link.readlink().name
                try:
                    counts = self._counts(home, link, folder / "books.duckdb")
                except duckdb.Error as error:
                    self._fail(f"read of {home}, {version}: {error}")
                    continue
                self._reads += 1
                if version not in self._versions[home]:
                    self._versions[home].append(version)
                if len(counts) != ACCOUNTS or not self._complete.issuperset(counts):
                    self._fail(f"{home}, {version}: rows and keys by account: {counts}")

    def _counts(self, home: str, link: Path, books: Path) -> list[tuple[int, int]]:
        """Read version and books; the first version is published before there are books."""
        if books.is_symlink():
            self._with_books.add(home)
        with duckdb.connect(link, read_only=True) as db:
            counts = db.execute(COUNTS).fetchall()
            if home in self._with_books:
                db.execute(f"ATTACH '{books}' AS books (READ_ONLY)")
                db.execute("SELECT * FROM books.meta.books").fetchall()
        return counts

    def _fail(self, message: str) -> None:
        self._failures.append(f"{time.strftime('%H:%M:%S')} {message}")


if __name__ == "__main__":
    _program, folder, endpoint, rows, *homes = sys.argv
    Analyst(Path(folder), endpoint, int(rows), homes).work()
