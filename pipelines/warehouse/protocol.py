"""What publishing needs of a warehouse: versions, each built from the one before, one published."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import duckdb


@dataclass(frozen=True)
class Version:
    """One version of the warehouse. Its file is never changed after it is published."""

    number: int
    path: Path


class Build(Protocol):
    """A version that is being made; `db` is its database, open read-write."""

    number: int
    db: duckdb.DuckDBPyConnection

    def commit(self, verify: Callable[[duckdb.DuckDBPyConnection], None]) -> Version:
        """Finish the file: checkpoint, reopen read-only for `verify`, make it durable, rename it.

        Not published yet. Raises BuildFailed, StorageFailed and whatever `verify` raises.
        """

    def abort(self) -> None:
        """Delete the unfinished file. Does nothing after `commit`."""


class Warehouse(Protocol):
    """Versions of the warehouse."""

    def begin(self, base: Version | None, number: int) -> Build:
        """Start version `number` as a copy of `base`, empty without one. Raises StorageFailed.

        Deletes what killed builds left; the caller holds the lock `build`.
        """

    def publish(self, version: Version) -> None:
        """Make a finished version the one that analysts open, in one step."""

    def published(self) -> Version | None:
        """Return the version that analysts open now; the symlink decides. Its file may be lost."""

    def versions(self) -> list[Version]:
        """Return the finished versions, oldest first."""

    def open(self, number: int | None = None) -> duckdb.DuckDBPyConnection:
        """Open a version read-only (None: the published one). Raises VersionNotFound."""

    def drop(self, number: int) -> None:
        """Delete a version's file; refuses the published one."""
