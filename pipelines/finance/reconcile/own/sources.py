"""Reads the rows of a source of own books as texts: files, or a table of a database.

Here: which files a source has, their digests, and that they did not change while they were read.
Not here: what the texts say (rows).
"""

import hashlib
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import duckdb

from pipelines.finance.own_mapping import OwnSource
from pipelines.finance.reconcile.own.database import TableRows
from pipelines.finance.reconcile.own.files import load_file
from pipelines.finance.reconcile.own.memory import add_rows
from pipelines.finance.reconcile.own.not_read import NotRead

SUFFIXES: Final = (".csv", ".parquet", ".xlsx")
# Hidden files, and what Excel puts beside a workbook that it has open.
NOT_OURS: Final = (".", "~$")


class Insert(Protocol):
    """Returns the statement that adds texts, which are a query, of a file by its number."""

    def __call__(self, texts: str, file: int) -> str:
        """Return the statement."""
        ...


class OwnFile(NamedTuple):
    """A file, or a table of a database, that was read whole."""

    name: str
    sha256: str


def load_texts(
    db: duckdb.DuckDBPyConnection, source: OwnSource, root: Path, insert: Insert
) -> list[OwnFile]:
    """Add the rows of a source; `root` is the home. Raises NotRead, duckdb.Error."""
    columns = source.roles.columns()
    if source.file is None:
        rows = TableRows(str(source.url_variable), str(source.table), columns)
        add_rows(db, partial(insert, file=0), columns, enumerate(rows, 1))
        return [OwnFile(source.place, rows.sha256())]
    files = find_files(root, source.file)
    loaded = []
    for number, file in enumerate(files):
        digest = _digest_of(file)
        load_file(db, file, columns, partial(insert, file=number))
        if _digest_of(file) != digest:
            raise NotRead(f"{_name_of(root, file)} changed while it was read")
        loaded.append(OwnFile(_name_of(root, file), digest))
    if find_files(root, source.file) != files:
        raise NotRead(f"files of {source.file} came or went while they were read")
    return loaded


def digest_of_all(files: Sequence[OwnFile]) -> str:
    """Return the SHA-256 of a source: of its file, or of the lines `sha256sum` prints of all."""
    if len(files) == 1:
        return files[0].sha256
    lines = "".join(f"{file.sha256}  {file.name}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def digest_now(source: OwnSource, root: Path) -> str | None:
    """Return the SHA-256 that a source of files has now; None of a database, or if unreadable."""
    if source.file is None:
        return None
    try:
        files = find_files(root, source.file)
        return digest_of_all([OwnFile(_name_of(root, file), _digest_of(file)) for file in files])
    except NotRead:
        return None


def find_files(root: Path, pattern: str) -> list[Path]:
    """Return the files that a file, folder or pattern names, in their order.

    Raises NotRead, also for what is found and is no file: its rows would be lost in silence.
    """
    try:
        found = sorted(_found(root, pattern))
    except (OSError, ValueError) as error:  # a folder that nobody may read, or no pattern
        raise NotRead(f"{pattern} cannot be read: {error}") from error
    files = [path for path in found if not path.name.startswith(NOT_OURS)]
    if "**" in pattern:  # its folders are read
        files = [path for path in files if not path.is_dir()]
    if not files:
        raise NotRead(f"no file is there as {pattern} says, relative to the home")
    for file in files:
        _require_file(root, file)
    return files


def _found(root: Path, pattern: str) -> Iterable[Path]:
    path = root / pattern
    if path.is_dir():
        return path.iterdir()
    if path.exists():
        return [path]
    if Path(pattern).is_absolute():
        return Path(path.anchor).glob(str(path.relative_to(path.anchor)))
    return root.glob(pattern)


def _require_file(root: Path, file: Path) -> None:
    name = _name_of(root, file)
    if file.is_dir():
        raise NotRead(
            f"{name} is a folder, whose files are not read. Read all with a pattern such as "
            "ledger/**/*.csv"
        )
    if not file.is_file():
        raise NotRead(f"{name} is no file, or leads to none")
    if file.suffix.lower() not in SUFFIXES:
        raise NotRead(f"{name} is none of {', '.join(SUFFIXES)}")


def _name_of(root: Path, file: Path) -> str:
    """Return a file as people name it: relative to the home, if it is in it."""
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)


def _digest_of(file: Path) -> str:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise NotRead(f"{file.name} cannot be read: {error.strerror}") from error
