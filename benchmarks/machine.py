"""The machine that a figure belongs to, and tables to print figures in."""

import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path


def machine() -> str:
    """Return processor, cores, load of the last minute and Python version."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    load = os.getloadavg()[0]
    python = platform.python_version()
    return f"{model}, {os.cpu_count()} cores, load {load:.1f}; Python {python}"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
