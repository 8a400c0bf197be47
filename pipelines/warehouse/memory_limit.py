"""How much memory DuckDB may use, and how it is recognized that this was not enough.

Here: the memory of this machine or its container, and the limits that a build tries one after the
other. Not here: what needs the memory (`pipelines/load`, `pipelines/finance/reconcile`).
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import psutil

from pipelines.core.text import printable

USUAL: Final = 128_000_000  # bytes; lists of a million rows need no more
# Lists of many columns do: in its COMMIT, DuckDB takes two blocks of 256 KiB for each column of a
# table to which rows were added, 254 MB for 480 columns.
GROWTH: Final = 4
ROOT: Final = Path("/")
# DuckDB has no error class for a refusal inside a COMMIT.
REFUSED: Final = re.compile(
    r"Out of Memory|(could not|failed to) (allocate|pin|offload)", re.IGNORECASE
)
ALLOWED: Final = re.compile(r"/([0-9.]+ [KMGT]iB) used")


def machine_memory(root: Path = ROOT) -> int:
    """Return the bytes of memory of this machine, or of its container if that has less."""
    return min([psutil.virtual_memory().total, *_container_limits(root)])


def _container_limits(root: Path) -> Iterator[int]:
    """Yield every limit of the control groups of this process, of version 1 and 2."""
    lines = []
    with suppress(OSError):  # a system without control groups
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    for line in lines:
        _number, controllers, group = line.split(":", 2)
        if controllers == "":  # version 2
            mount = root / "sys/fs/cgroup"
            file_name = "memory.max"
        elif controllers == "memory":  # version 1
            mount = root / "sys/fs/cgroup/memory"
            file_name = "memory.limit_in_bytes"
        else:
            continue
        # Inside a container, the group may be shown as its host names it, and be mounted as root.
        # A group also keeps to the limits of all groups above it.
        innermost = mount / group.lstrip("/")
        for folder in [innermost, *innermost.parents]:
            if not folder.is_relative_to(mount):
                break
            with suppress(OSError, ValueError):  # no such group, or "max"
                yield int((folder / file_name).read_text(encoding="utf-8"))


@dataclass(frozen=True)
class MemoryLimit:
    """What DuckDB may use before it spills to disk, as DuckDB reads it.

    A build that is refused some may be given up to `most` bytes; 0: a person has set the limit.
    """

    text: str
    most: int = 0

    @classmethod
    def of(cls, setting: str | None = None) -> "MemoryLimit":
        """Return the limit of a setting; without one, a small limit that may grow."""
        if setting is not None:
            return cls(setting)
        most = machine_memory() // 2
        return cls(_text(min(USUAL, most)), most)

    def larger(self) -> "MemoryLimit | None":
        """Return the limit to try after this one; None where there is none."""
        if not self.most:
            return None
        size = int(self.text.removesuffix("MB")) * 1_000_000
        grown = _text(min(size * GROWTH, self.most))
        if grown == self.text:
            return None
        return MemoryLimit(grown, self.most)


def _text(size: int) -> str:
    return f"{size // 1_000_000}MB"


def is_memory_refused(error: BaseException | None) -> bool:
    """Return whether an error, or one that it comes from, is memory that was refused."""
    while error is not None:
        if isinstance(error, duckdb.Error) and REFUSED.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def readable_error(error: BaseException) -> str:
    """Return an error of DuckDB for people, without a full stop."""
    if not is_memory_refused(error):
        return printable(error)
    limit = ALLOWED.search(str(error))
    allowed = f" ({limit[1]})" if limit else ""
    return f"DuckDB needs more memory than memory_limit in settings.toml allows{allowed}"
