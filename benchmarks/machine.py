"""The machine and the versions that a figure belongs to, and tables to print them in."""

import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path


def named() -> str:
    """Return what a reader needs to compare: processor, cores, Python and the engines' versions."""
    models = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    engines = ", ".join(f"{name} {version(name)}" for name in ("duckdb", "pyarrow", "httpx"))
    model = models[0] if models else platform.machine()
    return f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}, {engines}"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
