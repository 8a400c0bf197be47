"""What the user sees: progress while it runs, rows as tables, one style for all verbs."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich import progress
from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from pipelines.cli import layout
from pipelines.cli.layout import Rows
from pipelines.clock import SYSTEM
from pipelines.run import Outcome, StreamOutcome, Watch
from pipelines.run.pace import Pace, allowed
from pipelines.settings import Home, Settings
from pipelines.warehouse.meta import Fold
from pipelines.warehouse.scan import Progress

OUT = layout.console()
ERR = layout.console(stderr=True)
INTERRUPTED = (
    "[yellow]interrupted:[/] what analysts open is as it was; what was read is archived, "
    "and a sync within 6 hours goes on from there"
)


class _Mark(progress.SpinnerColumn):
    """A list turns while it is read; at the end it was read to its end or it was not."""

    def render(self, task: progress.Task) -> RenderableType:
        return super().render(task) if task.fields["reading"] else Text("✗", style="red")


PROGRESS = (
    _Mark(finished_text="[green]✓[/]"),
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
            self.tasks[which] = self.bars.add_task(
                news.stream, total=None, rows=0, pages=0, reading=True
            )
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

    def end(self) -> None:
        """Nothing is read any more: mark what was not read to its end."""
        for task in self.bars.tasks:
            self.bars.update(task.id, reading=task.finished)


@contextmanager
def watching(own: Settings) -> Iterator[Watch]:
    """Show each list while it is read, the pace and the end to expect; on a pipe, only the last."""
    bars, line = progress.Progress(*PROGRESS, console=ERR), Text(style="dim")
    with Live(Group(bars, line), console=ERR, refresh_per_second=5) as live:
        lists = _Lists(own, bars, line)
        try:
            yield Watch(lists.tell, lambda why: live.console.print(f"[yellow]…[/] {escape(why)}"))
        except KeyboardInterrupt:
            live.console.print(INTERRUPTED)
            raise
        finally:
            lists.end()
            live.update(bars)  # the pace is over
    if not ERR.is_terminal:
        ERR.print()  # which Live leaves to us


def show(rows: Rows, title: str = "") -> None:
    """Print records as a table, every value as it is."""
    OUT.print(layout.drawn(rows, title, OUT.width))


def closing(outcome: Outcome, home: Home) -> None:
    """Print what became of every stream, the published file and how to open it."""
    connections = list(dict.fromkeys(each.connection for each in outcome.streams))
    for name in connections:
        streams = [each for each in outcome.streams if each.connection == name]
        _told(streams, f"connection {name}" if len(connections) > 1 else "")
    if outcome.version is None:
        ERR.print("nothing new was published; the rows that analysts open are as they were")
        return
    done = sum(each.error is None for each in outcome.streams)
    if done < len(outcome.streams):
        rest = "the others keep the rows that were published last"
        ERR.print(f"{done} of {len(outcome.streams)} streams done; {rest}", soft_wrap=True)
    if home.warehouse:
        OUT.print(f"published {outcome.version.file} (docs/analysts.md: The lake)")
        return
    OUT.print(f"published {escape(outcome.version.file)}; query it with", soft_wrap=True)
    OUT.print(f"  {escape(opening_line(home.link))}", soft_wrap=True)


def _told(streams: Sequence[StreamOutcome], title: str) -> None:
    """Print a connection's streams: a table, what is proven, what failed (one cause said once)."""
    show([_line(each, repeats=any(map(_repeats, streams))) for each in streams], title)
    causes: dict[str, list[str]] = {}
    for each in streams:
        if each.manifest:
            OUT.print(escape(each.manifest.proof.sentence(each.stream)), soft_wrap=True)
        if each.error:
            causes.setdefault(str(each.error), []).append(each.stream)
        for doubt in _doubts(each.fold) if each.fold and not each.error else ():
            ERR.print(f"[yellow]{each.stream}:[/] {escape(doubt)}", soft_wrap=True)
    where = f"{title}, " if title else ""
    for cause, names in causes.items():
        said = cause.removeprefix(f"{names[0]}: ")
        ERR.print(f"[bold red]{where}{', '.join(names)}:[/] {escape(said)}", soft_wrap=True)


def _repeats(each: StreamOutcome) -> int:
    return each.manifest.proof.repeats if each.manifest else 0


def _line(each: StreamOutcome, *, repeats: bool) -> dict[str, object]:
    """Return a stream's row of the table; with the column of repeated rows where any has some."""
    repeated = {"repeated rows": _repeats(each)} if repeats else {}
    return {
        "stream": each.stream,
        "rows": each.fold.rows if each.fold else None,
        **repeated,
        "pages": each.manifest.pages if each.manifest else None,
        "requests": each.effort.requests,
        "429s": each.effort.refused,
        "seconds waited": round(each.effort.waited, 1),
        "proof": each.manifest.proof.grade.words if each.manifest else "",
        "result": "failed" if each.error else "published",
    }


def _doubts(fold: Fold) -> Iterator[str]:
    if fold.conflicts:
        yield (
            f"{fold.conflicts:,} rows repeat a key with other values. One copy of each key is "
            "loaded: the one loaded before, otherwise the later one in the list. The other copies "
            "are in quarantine. If the key is not unique, set another one: "
            f"streams.{fold.stream}.key."
        )
    if fold.quarantined:
        yield (
            f"{fold.quarantined:,} of {fold.read:,} rows set aside, which no table can hold; "
            f"why, in the published file: SELECT _key, reason FROM quarantine.{fold.stream}"
        )


def opening_line(link: Path) -> str:
    """Return the one line that opens the published file and shows a little of it."""
    opened = f"duckdb.connect({str(link)!r}, read_only=True)"
    program = f"import duckdb; {opened}.sql('FROM current.usage LIMIT 5').show()"
    plain = not set('"$`!\\') & set(program)
    return (
        f'{sys.executable} -c "{program}"' if plain else shlex.join([sys.executable, "-c", program])
    )
