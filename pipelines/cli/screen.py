"""What the user sees: progress while it runs, frames as tables, one style for all verbs."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype
from rich import progress
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pipelines.clock import SYSTEM
from pipelines.run import Outcome, StreamOutcome, Watch
from pipelines.run.pace import Pace, allowed
from pipelines.settings import Settings
from pipelines.warehouse import frames
from pipelines.warehouse.meta import Fold
from pipelines.warehouse.scan import Progress

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)
PROGRESS = (
    progress.SpinnerColumn(finished_text="[green]✓[/]"),
    progress.TextColumn("{task.description:<10}"),
    progress.BarColumn(bar_width=20),
    progress.TextColumn("{task.fields[rows]:>9,} rows {task.fields[pages]:>6,} pages"),
    progress.TimeElapsedColumn(),
)


@dataclass
class _Lists:
    """The lists that are being read: a bar for each, a line for each connection."""

    settings: Settings
    bars: progress.Progress
    line: Text
    tasks: dict[tuple[str, str], progress.TaskID] = field(default_factory=dict)
    paces: dict[str, Pace] = field(default_factory=dict)
    outlooks: dict[str, str] = field(default_factory=dict)

    def tell(self, news: Progress) -> None:
        """Show one more page."""
        which = (news.connection, news.stream)
        if which not in self.tasks:
            self.tasks[which] = self.bars.add_task(news.stream, total=None, rows=0, pages=0)
        total = news.rows if news.done else news.expected
        self.bars.update(
            self.tasks[which],
            completed=news.rows,
            total=max(total, news.rows) if total is not None else None,
            rows=news.rows,
            pages=news.pages,
        )
        if news.connection not in self.paces:
            of = self.settings.connection(news.connection)
            self.paces[news.connection] = Pace(SYSTEM, allowed(self.settings, of))
        outlook = self.paces[news.connection].count(news)
        self.outlooks[news.connection] = f"  {news.connection}: {outlook.words}"
        self.line.plain = "\n".join(self.outlooks.values())


@contextmanager
def watching(own: Settings) -> Iterator[Watch]:
    """Show each list while it is read, the pace and the end to expect; on a pipe, only the last."""
    bars, line = progress.Progress(*PROGRESS, console=ERR), Text(style="dim")
    with Live(Group(bars, line), console=ERR, refresh_per_second=5) as live:
        lists = _Lists(own, bars, line)
        yield Watch(lists.tell, lambda why: live.console.print(f"[yellow]…[/] {escape(why)}"))


def show(frame: pd.DataFrame, title: str = "") -> None:
    """Print a frame as a table, every value as it is."""
    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold")
    for name in frame:
        numeric = is_numeric_dtype(frame[name].dtype)
        table.add_column(str(name), justify="right" if numeric else "left", overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*("" if pd.isna(value) else escape(str(value)) for value in row))
    OUT.print(table)


def closing(outcome: Outcome, link: Path) -> None:
    """Print what became of every stream, the published file and how to open it."""
    several = len({each.connection for each in outcome.streams}) > 1
    rows = [
        ({"connection": each.connection} if several else {}) | _line(each)
        for each in outcome.streams
    ]
    show(frames.from_rows(rows))
    named = [(_name(each, several=several), each) for each in outcome.streams]
    for name, each in named:
        if each.manifest:
            OUT.print(escape(each.manifest.proof.sentence(name)), soft_wrap=True)
    for name, each in named:
        if each.error:
            ERR.print(f"[bold red]{name}[/] {escape(str(each.error))}", soft_wrap=True)
        elif each.fold and each.fold.conflicts:
            ERR.print(f"[yellow]{name}[/] {_conflicts(each.fold)}", soft_wrap=True)
    if outcome.version is None:
        ERR.print("nothing was published; what analysts open is as it was")
        return
    OUT.print(f"published {escape(outcome.version.file)}; query it with", soft_wrap=True)
    OUT.print(f"  {escape(opening_line(link))}", soft_wrap=True)


def _name(each: StreamOutcome, *, several: bool) -> str:
    """Return what a stream is called, among those of several connections too."""
    return f"{each.connection}/{each.stream}" if several else each.stream


def _line(each: StreamOutcome) -> dict[str, object]:
    return {
        "stream": each.stream,
        "rows": each.fold.rows if each.fold else None,
        "pages": each.manifest.pages if each.manifest else None,
        "requests": each.effort.requests,
        "429s": each.effort.refused,
        "seconds waited": round(each.effort.waited, 1),
        "proof": each.manifest.proof.grade.words if each.manifest else "",
        "result": "failed" if each.error else "published",
    }


def _conflicts(fold: Fold) -> str:
    return (
        f"{fold.conflicts:,} records were twice on a page and said something else each time; the "
        f"later one counts. If the key is not unique, set another one (streams.{fold.stream}.key)."
    )


def opening_line(link: Path) -> str:
    """Return the one line that opens the published file and shows a little of it."""
    opened = f"duckdb.connect({str(link)!r}, read_only=True)"
    program = f"import duckdb; {opened}.sql('FROM current.usage LIMIT 5').show()"
    plain = not set('"$`!\\') & set(program)
    return (
        f'{sys.executable} -c "{program}"' if plain else shlex.join([sys.executable, "-c", program])
    )
