"""How long `partner-sync --help` takes, beside the imports that no such program can do without."""

import resource
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("partner-sync"))
HELP = [PROGRAM, "--help"]
FLOOR = [sys.executable, "-c", "import httpx, typer, rich.table"]
TIMES = 15
LIMIT = 1.5


def cpu_seconds(command: list[str]) -> float:
    """Return the CPU seconds of one start; they do not depend on what else the machine does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(_arguments: list[str]) -> None:
    """Measure both in turn; print a table. Exit with 1 if the ratio is above the limit."""
    taken = [(cpu_seconds(HELP), cpu_seconds(FLOOR)) for _ in range(TIMES)]
    program, floor = (statistics.median(column) for column in zip(*taken, strict=True))
    ratio = program / floor
    print("| `partner-sync --help` | `import httpx, typer, rich.table` | ratio | limit |")
    print("|---|---|---|---|")
    print(f"| {program * 1000:.0f} ms | {floor * 1000:.0f} ms | {ratio:.2f} | {LIMIT} |")
    if ratio > LIMIT:
        sys.exit(1)
