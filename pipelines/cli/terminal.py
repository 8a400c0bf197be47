"""Here: how lines, tables and JSON are printed, and people are asked. Text is escaped first.

Not here: the text about a sync, a version or books (outcomes).
"""

import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.filesize import decimal as readable_size
from rich.table import Table
from rich.text import Text

from pipelines import app
from pipelines.core import stop
from pipelines.core.errors import ConfigurationError, PartnerSyncError, StorageFailed
from pipelines.core.text import printable

if TYPE_CHECKING:
    from pipelines.config.home import Home

LOG = logging.getLogger("pipelines")
# Without a terminal, a value stays on one line for grep and awk.
PIPE_WIDTH = 10_000
# Characters. A service can send a message or a value of any length.
LONGEST_LINE = 2_000
HEADINGS = {"rate_limited": "429s", "bytes": "size"}
Rows = Sequence[Mapping[str, object]]
# What the running command has opened; its end closes them.
SESSIONS = ExitStack()


def _console(descriptor: int, *, stderr: bool = False) -> Console:
    width = None if os.isatty(descriptor) else PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=True)


OUT = _console(1)
ERR = _console(2, stderr=True)


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
    if remedy.startswith("partner-sync "):
        line(f"  Run `{remedy}`.")
    elif remedy:
        line(f"  {remedy}")


class _LogHandler(logging.Handler):
    """Writes what happens to stderr: as text, or as one JSON object a line."""

    as_json = False

    def emit(self, record: logging.LogRecord) -> None:
        message = printable(record.getMessage(), LONGEST_LINE)
        level = record.levelname.lower()
        if self.as_json:
            time = datetime.fromtimestamp(record.created, UTC).isoformat()
            entry = json.dumps({"time": time, "level": level, "message": message})
            sys.stderr.write(f"{entry}\n")
        else:
            style = "dim" if level == "info" else "yellow"
            ERR.print(Text(message, style=style))


HANDLER = _LogHandler()
LOG.addHandler(HANDLER)
LOG.setLevel(logging.INFO)


def open_home(home: "Home | None" = None, *, accept_reason: str = "") -> "app.session.AppSession":
    """Open a home (None: that of the environment) until the command ends; log as it is set.

    `accept_reason` is that of `open_session`.
    """
    HANDLER.as_json = False
    # From now on, work looks for a stop at safe points. What a handler raises can be lost.
    stop.note_only()
    session = SESSIONS.enter_context(app.session.open_session(home, accept_reason=accept_reason))
    HANDLER.as_json = session.settings.log_format == "json"
    return session


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is changed. Raises ConfigurationError: a no, or nobody to ask."""
    if not yes and not sys.stdin.isatty():
        raise ConfigurationError(
            "Nothing was changed: nobody can be asked.", "Run the same command with --yes."
        )
    # Nothing else would end a question that is not answered.
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
        if json_value is None:
            json_value = rows
        document = msgspec.to_builtins(json_value)
        with _writing():
            sys.stdout.write(json.dumps(document, indent=2) + "\n")
            # Else Python writes it at its end, where a full disk is no message any more.
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
    if out.measure(table, options=unbounded).maximum > out.width:
        # Columns are then one space apart, in place of three.
        table.padding = 0
        table.show_edge = False
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
