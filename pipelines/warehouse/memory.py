"""How much memory DuckDB may use, and what it says when that is not enough.

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
    groups = []
    with suppress(OSError):
        groups = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    for line in groups:
        _, controllers, group = line.split(":", 2)
        folder, name = root / "sys/fs/cgroup", "memory.max"
        if controllers:
            folder, name = folder / "memory", "memory.limit_in_bytes"
        if controllers not in {"", "memory"}:
            continue
        # Inside a container, the group may be shown as its host names it, and be mounted as root.
        inner = folder / group.lstrip("/")
        for each in [inner, *inner.parents]:
            if not each.is_relative_to(folder):
                break
            with suppress(OSError, ValueError):  # no such group, or "max"
                yield int((each / name).read_text(encoding="utf-8"))


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
        return MemoryLimit(grown, self.most) if grown != self.text else None


def _text(size: int) -> str:
    return f"{size // 1_000_000}MB"


def is_refused(error: BaseException | None) -> bool:
    """Return whether an error, or one that it comes from, is memory that was refused."""
    while error is not None:
        if isinstance(error, duckdb.Error) and REFUSED.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def say(error: BaseException) -> str:
    """Return an error of DuckDB for people, without a full stop."""
    if not is_refused(error):
        return printable(error)
    found = ALLOWED.search(str(error))
    allowed = f" ({found[1]})" if found else ""
    return f"DuckDB needs more memory than memory_limit in settings.toml allows{allowed}"
