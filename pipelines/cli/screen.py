"""What the user sees: progress while it runs, frames as tables, one style for all verbs."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype
from rich import progress
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pipelines.run import Outcome, Watch
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


@contextmanager
def watching() -> Iterator[Watch]:
    """Show a line per stream while it is read; on a pipe, the last state of each."""
    with progress.Progress(*PROGRESS, console=ERR) as bars:
        lines: dict[str, progress.TaskID] = {}

        def tell(news: Progress) -> None:
            if news.stream not in lines:
                lines[news.stream] = bars.add_task(news.stream, total=None, rows=0, pages=0)
            total = news.pages if news.done else None
            bars.update(
                lines[news.stream],
                completed=news.pages,
                total=total,
                rows=news.rows,
                pages=news.pages,
            )

        yield Watch(tell, lambda why: bars.console.print(f"[yellow]…[/] {escape(why)}"))


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
    rows = [
        {
            "stream": each.stream,
            "rows": each.fold.rows if each.fold else None,
            "pages": each.manifest.pages if each.manifest else None,
            "requests": each.effort.requests,
            "429s": each.effort.refused,
            "seconds waited": round(each.effort.waited, 1),
            "result": "failed" if each.error else "published",
        }
        for each in outcome.streams
    ]
    show(frames.from_rows(rows))
    for each in outcome.streams:
        if each.error:
            ERR.print(f"[bold red]{each.stream}[/] {escape(str(each.error))}", soft_wrap=True)
        elif each.fold and each.fold.conflicts:
            ERR.print(f"[yellow]{each.stream}[/] {_conflicts(each.fold)}", soft_wrap=True)
    if outcome.version is None:
        ERR.print("nothing was published; what analysts open is as it was")
        return
    OUT.print(f"published {escape(outcome.version.file)}; query it with", soft_wrap=True)
    OUT.print(f"  {escape(opening_line(link))}", soft_wrap=True)


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
