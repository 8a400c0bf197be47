"""Progress on the terminal: a bar for each list, rows, requests, time left. A pipe gets lines."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from pipelines.cli.render import ERR
from pipelines.core.text import printable

SECONDS_BETWEEN_LINES = 30  # on a pipe


class TerminalProgress:
    """Shows the progress of a sync on stderr."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}
        self._last_line = time.monotonic()

    def advance(self, stream: str, rows: int, requests: int, expected_rows: int | None) -> None:
        """Show how far one list is."""
        if stream not in self._tasks:
            self._tasks[stream] = self._bars.add_task(printable(stream), rows=0, requests=0)
        total = None if expected_rows is None else max(expected_rows, rows)
        self._bars.update(
            self._tasks[stream], completed=rows, total=total, rows=rows, requests=requests
        )
        quiet = time.monotonic() - self._last_line
        if not ERR.is_terminal and quiet > SECONDS_BETWEEN_LINES:
            self.note(f"{stream}: {rows:,} rows, {requests:,} requests so far.")

    def note(self, message: str) -> None:
        """Print one sentence above the bars."""
        self._last_line = time.monotonic()
        self._bars.console.print(Text(printable(message), style="dim"))


@contextmanager
def shown_progress() -> Iterator[TerminalProgress]:
    """Show progress for the block."""
    bars = Progress(
        TextColumn("{task.description:<20}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[rows]:>9,} rows {task.fields[requests]:>6,} requests"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=ERR,
        transient=True,
        disable=not ERR.is_terminal,
    )
    with bars:
        yield TerminalProgress(bars)
