"""Real processes at the same time: what virtual time cannot show. Nothing rests on their speed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.rate_limit import contender

NANOSECONDS = 10**9


@pytest.mark.long
def test_real_processes_never_exceed_the_limit_together(tmp_path: Path) -> None:
    command = [sys.executable, "-m", contender.__name__, str(tmp_path / "metadata.db"), "60"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    printed = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    arrivals = sorted(int(line) for text in printed for line in text.split())
    assert len(arrivals) == 4 * 60
    window = contender.OPTIONS.window_seconds * NANOSECONDS
    limit = contender.OPTIONS.limit
    assert all(b - a > window for a, b in zip(arrivals, arrivals[limit:], strict=False))
