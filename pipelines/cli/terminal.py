"""What the terminal shows and asks. Text is escaped before it is printed."""

import gc
import json
import logging
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import typer
from rich import progress
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.filesize import decimal as readable_size
from rich.table import Table
from rich.text import Text

from pipelines import app, finance
from pipelines.core import stop
from pipelines.core.alike import About, said_once
from pipelines.core.errors import ConfigurationError, ExitCode, PartnerSyncError, StorageFailed
from pipelines.core.finding import Finding, Severity
from pipelines.core.text import counted, printable

if TYPE_CHECKING:
    from pipelines.config.home import Home

LOG = logging.getLogger("pipelines")
PIPE_WIDTH = 10_000  # a value stays on one line for grep and awk
LONGEST_LINE = 2_000  # characters
SYNC_COLUMNS = (
    "connection", "stream", "rows", "new", "changed", "deleted", "requests", "rate_limited",
    "proof", "result",
)  # fmt: skip
HEADINGS = {"rate_limited": "429s", "bytes": "size"}
Rows = Sequence[Mapping[str, object]]
SESSIONS = ExitStack()  # that the running command has opened; its end closes them
OUT = Console(width=None if os.isatty(1) else PIPE_WIDTH, highlight=False, soft_wrap=True)
ERR = Console(
    stderr=True, width=None if os.isatty(2) else PIPE_WIDTH, highlight=False, soft_wrap=True
)


@contextmanager
def _writing() -> Iterator[None]:
    """Raise StorageFailed if what the block prints is refused, except by a closed pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        # Python writes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise StorageFailed(f"The result could not be written: {error.strerror}.") from error


def line(text: str, remedy: str = "", *, style: str = "", longest: int = LONGEST_LINE) -> None:
    """Print one line, and what to do on the next; a bare command is introduced as one."""
    with _writing():
        OUT.print(Text(printable(text, longest), style=style))
    if remedy:
        line(f"  Run `{remedy}`." if remedy.startswith("partner-sync ") else f"  {remedy}")


class _LogHandler(logging.Handler):
    """Writes what happens to stderr: as text, or as one JSON object a line."""

    as_json = False

    def emit(self, record: logging.LogRecord) -> None:
        message, level = printable(record.getMessage(), LONGEST_LINE), record.levelname.lower()
        if self.as_json:
            time = datetime.fromtimestamp(record.created, UTC).isoformat()
            entry = json.dumps({"time": time, "level": level, "message": message})
            sys.stderr.write(f"{entry}\n")
        else:
            ERR.print(Text(message, style="dim" if level == "info" else "yellow"))


HANDLER = _LogHandler()
LOG.addHandler(HANDLER)
LOG.setLevel(logging.INFO)


def open_home(home: "Home | None" = None) -> "app.session.AppSession":
    """Open a home (None: that of the environment) until the command ends; log as it is set."""
    HANDLER.as_json = False
    stop.note_only()
    session = SESSIONS.enter_context(app.session.open_session(home))
    HANDLER.as_json = session.settings.log_format == "json"
    return session


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is changed. Raises ConfigurationError: a no, or nobody to ask."""
    if not yes and not sys.stdin.isatty():
        raise ConfigurationError(
            "Nothing was changed: nobody can be asked.", "Run the same command with --yes."
        )
    with stop.raised():
        if not yes and not typer.confirm(question):
            raise ConfigurationError("Nothing was changed.")


def show_error(error: PartnerSyncError) -> None:
    """Print what happened and what to do, or log it if messages are JSON."""
    if HANDLER.as_json:
        LOG.error("%s %s", error, error.remedy)
        return
    typer.secho("Error: ", err=True, nl=False, fg="red", bold=True)
    for text in filter(None, (str(error), error.remedy)):
        typer.echo(printable(text, LONGEST_LINE), err=True)


def show(
    rows: Rows, columns: Iterable[str] = (), *, json_value: object = None, if_empty: str = ""
) -> None:
    """Print rows as a table, or the line `if_empty` without any.

    The option --json silences what `OUT` prints. Then `json_value` (default: the rows) is printed
    as JSON: numbers are numbers, decimals exact strings, times in ISO 8601.
    """
    if OUT.quiet:
        document = msgspec.to_builtins(rows if json_value is None else json_value)
        with _writing():
            sys.stdout.write(json.dumps(document, indent=2) + "\n")
            sys.stdout.flush()
    show_table(rows, columns)
    if if_empty and not rows:
        line(if_empty)


def show_table(rows: Rows, columns: Iterable[str] = (), out: Console = OUT) -> None:
    """Print rows as a table with these columns (none named: all); nothing without a row."""
    if out.quiet or not rows:
        return
    columns = list(columns or rows[0])
    table = Table(box=SIMPLE_HEAD)
    for name in columns:
        is_number = all(isinstance(row[name], int | Decimal | None) for row in rows)
        heading = HEADINGS.get(name, name.replace("_", " "))
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(row[name], is_size=name == "bytes")) for name in columns))
    unbounded = out.options.update(max_width=PIPE_WIDTH)
    if out.measure(table, options=unbounded).maximum > out.width:  # one space instead of three
        table.padding, table.show_edge = 0, False
    with _writing():
        out.print(table, soft_wrap=False)


def shown(value: object, *, is_size: bool = False) -> str:
    """Return a value as people read it: decimals without an exponent, times in UTC."""
    match value:
        case None:
            text = ""
        case bool():
            text = "yes" if value else "no"
        case int():
            text = readable_size(value) if is_size else f"{value:,}"
        case Decimal():
            text = f"{value:f}"
        case datetime():
            text = f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        case list() | tuple():
            text = ", ".join(map(shown, value))
        case _:
            text = str(value)
    return printable(text, LONGEST_LINE)


@contextmanager
def _shown_progress() -> Iterator["app.results.OnProgress"]:
    """Show a bar for each list on stderr until the block ends; without a terminal, log lines."""
    if not ERR.is_terminal:
        yield app.results.LoggedProgress()
        return
    columns = (
        progress.TextColumn("{task.description:<20}", markup=False),
        progress.BarColumn(bar_width=20),
        progress.TextColumn("{task.completed:>9,} rows {task.fields[requests]:>6,} requests"),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=ERR, transient=True) as bars:
        tasks = dict[str, progress.TaskID]()

        def advance(stream: str, rows: int, requests: int, expected_rows: int | None) -> None:
            if stream not in tasks:
                tasks[stream] = bars.add_task(printable(stream), requests=0)
            total = None if expected_rows is None else max(expected_rows, rows)
            bars.update(tasks[stream], completed=rows, total=total, requests=requests)

        yield advance


def run_sync(
    session: "app.session.AppSession",
    requests: Sequence["app.results.ReadRequest"] = (),
    make: "app.nightly.MakeVersion | None" = None,
    *,
    no_build: bool = False,
) -> int:
    """Read lists, publish what was read, print both; return the exit code. `make`: see `build`."""
    make = None if no_build else make or app.nightly.build
    gc.freeze()  # what was imported stays: the search for cycles need not visit it for each page
    with _shown_progress() as on_progress:
        result = app.nightly.sync(session, requests, on_progress, make)
    values = result.values(str(session.home.link))
    rows = values.get("lists") or values["scans"]
    show(rows, SYNC_COLUMNS if requests else (), json_value=values)
    for each in result.streams:
        if each.scan:  # its proof names the list
            line(f"{each.connection} {each.message}", each.remedy)
    failed = [each.about() for each in result.streams if not each.scan]
    for places, about in said_once(failed):
        line(f"{places}: {about.message}", about.remedy, style="red")
    _show_findings(result.findings)
    _show_build(values["build"] if requests else values)
    if result.report:
        line(f"Report: {result.report}")
    for problem in result.problems:
        show_error(problem)
    code: int = result.exit_code
    return code


def show_and_reconcile(session: "app.session.AppSession", text: str) -> int:
    """Print what was changed, then make books with it; return the exit code."""
    line(text)
    return run_reconcile(session)


def run_reconcile(session: "app.session.AppSession", *, again: bool = False) -> int:
    """Make books of the published version, print which are published; return the exit code."""
    made = finance.books.make_books(session, again=again)
    if made.books is None:
        show([], json_value={"books": None, "version": None, "is_new": False, "file": None})
        line("Nothing is published yet, so there are no books. Run `partner-sync sync`.")
        return ExitCode.NOTHING_PUBLISHED
    found = {"books": made.books.number, "version": made.books.version, "is_new": made.is_new}
    show([], json_value={**found, "file": str(session.home.books_link)})
    if made.is_new:
        line(f"Published books {made.books}: {session.home.books_link}")
    else:
        line(f"Nothing new. Books {made.books} are published.")
    return ExitCode.DONE


def _show_findings(findings: Sequence[Finding]) -> None:
    for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO):
        found = [
            About(each.connection, each.stream, each.message, each.remedy, each.code)
            for each in findings
            if each.severity is severity
        ]
        for places, about in said_once(found):
            subject = f" {places}:" if places else ""
            style = "" if severity is Severity.INFO else "yellow"
            line(f"{severity}:{subject} {about.message}", about.remedy, style=style)


def _show_build(built: dict[str, Any] | None) -> None:
    """Print what became of a version, as `--json` does; None: none was asked for."""
    if built is None:
        line("No version was built. Run `partner-sync versions build`.")
        return
    for scan_id, reason in built["failed"].items():
        line(f"Scan {scan_id} could not be loaded: {reason}", style="red")
    if built["version"] is None:
        line("Nothing is published: no list has been loaded yet.", style="red")
    elif built["is_new"]:
        line(f"Published version {built['version']}. Open it with")
        line(f"  duckdb -readonly {shlex.quote(built['file'])}")
    else:
        line(f"Nothing new to publish. Analysts see version {built['version']}.")


def show_status(found: dict[str, Any]) -> None:
    """Print the published version, each list, and what needs attention."""
    version, findings, unknown = found["version"], found["findings"], found["unknown"]
    published = f"Published: version {version}, {found['file']}"
    line(published if version else "Nothing is published yet. Run `partner-sync sync`.")
    show(found["lists"], json_value=found)
    _show_findings(findings)
    for reason in unknown:
        line(f"not known: {reason}", style="yellow")
    for each in found["erasures"]:
        line(
            f"Erased: {counted(each['records'], 'record')} in {counted(each['files'], 'file')}, by "
            f"{each['person']} at {shown(each['erased_at'])}."
        )
    line(app.formats.sentence(found["formats"]))
    if version and not findings and not unknown:
        line(f"All {found['checks']} checks passed.")
