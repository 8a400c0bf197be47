"""What a night cost: processor seconds and memory of each process, bytes of each store.

Here: reading it from the system while the processes still run. Linux alone tells it. Not here: what
follows for ten thousand connections (benchmarks).
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PROCESSES = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(roots: Mapping[str, int]) -> dict[str, float]:
    """Return what each process and everything it began has used so far, ended children too."""
    children: dict[int, list[int]] = {}
    for process, parent in _parents():
        children.setdefault(parent, []).append(process)
    return {name: sum(map(used, _below(root, children))) for name, root in roots.items()}


def processes() -> list[int]:
    """Return every process of this machine."""
    return [int(each.name) for each in PROCESSES.iterdir() if each.name.isdigit()]


def used(process: int) -> float:
    """Return the processor seconds of a process so far, and of its children that have ended."""
    fields = _fields(process)
    return sum(map(int, fields[11:15])) / TICKS if fields else 0.0


def machine() -> tuple[int, int]:
    """Return the ticks of all processors so far: every one, and those that neighbours took."""
    line = (PROCESSES / "stat").read_text().partition("\n")[0]
    ticks = [int(each) for each in line.split()[1:9]]  # user, nice, system, idle, …, steal
    return sum(ticks), ticks[7]


def peak_megabytes(root: int) -> float:
    """Return the memory of the largest process below one, at its peak."""
    children: dict[int, list[int]] = {}
    for process, parent in _parents():
        children.setdefault(parent, []).append(process)
    return max(map(_peak, _below(root, children)), default=0.0)


def bytes_below(folder: Path) -> int:
    """Return the size of all files of a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _below(root: int, children: Mapping[int, Iterable[int]]) -> Iterator[int]:
    yield root
    for child in children.get(root, ()):
        yield from _below(child, children)


def _parents() -> Iterator[tuple[int, int]]:
    for each in processes():
        if fields := _fields(each):
            yield each, int(fields[1])


def _fields(process: int) -> list[str]:
    """Return what stands behind the command in a process's line: state, parent, …, times."""
    try:
        return (PROCESSES / str(process) / "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def _peak(process: int) -> float:
    try:
        lines = (PROCESSES / str(process) / "status").read_text().splitlines()
    except OSError:
        return 0.0
    found = [line.split()[1] for line in lines if line.startswith("VmHWM")]
    return int(found[0]) / 1024 if found else 0.0
