"""What all commands share: groups, options, and how a failure becomes a message and a code."""

import os
import sys
from contextlib import suppress
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer import Argument, Option
from typer.core import TyperGroup

from pipelines import app
from pipelines.cli.terminal import OUT, SESSIONS, show_error
from pipelines.core import stop
from pipelines.core.errors import ConfigurationError, ExitCode, PartnerSyncError

INTERRUPTED = "Interrupted. Analysts see the version that was published last."
RESUME = "Run `partner-sync sync` within 24 hours: it publishes what was read and resumes the rest."
REPEATED = (
    "check", "close", "connections", "discover", "export", "notify", "plan", "prune", "report",
    "pull", "reconcile", "runs", "statement", "status", "trace", "verify",
)  # fmt: skip
# By command. The others resume what was read.
REPEAT = {
    "erase": "Files may still contain the value. Run the same `partner-sync erase` to finish.",
    **dict.fromkeys(REPEATED, "Run the same command again."),
}
SETUP = "Set up"
RUN = "Run"
FINANCE = "Finance"
WAREHOUSE = "Warehouse"
TRY = "Try"
PANELS = (SETUP, RUN, FINANCE, WAREHOUSE, TRY)  # in this order


def _silence(value: bool) -> bool:  # noqa: FBT001 - Typer's signature of a callback
    OUT.quiet = value
    return value


def kept(text: str) -> str:
    """Return a text that a command keeps, unless it has the secret of a connection.

    The callback of each such option. Raises ConfigurationError.
    """
    if text:
        app.session.require_no_secret(text)
    return text


# Commands need not read it: its callback silences what is not JSON.
Json = Annotated[bool, Option("--json", callback=_silence, help="Print JSON instead of tables.")]
Connection = Annotated[str, Argument(help="Name of the connection.")]
# Without a terminal, nobody can be asked: the option is required there.
Reason = Annotated[
    str, Option(prompt=os.isatty(0), callback=kept, help="Reason, kept with your name.")
]
NoBuild = Annotated[bool, Option("--no-build", help="Do not build a version now.")]


class Program(TyperGroup):
    """Commands that return their exit code. An expected failure becomes a message."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the commands in the order in which the help shows their groups."""
        return sorted(super().list_commands(ctx), key=self._place_of_panel)

    def _place_of_panel(self, name: str) -> int:
        return PANELS.index(getattr(self.commands[name], "rich_help_panel", ""))

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Refuse an option or argument without text, wherever it is: it would mean "all", or today.

        Mostly, a script has a variable that is not set.
        """
        for before, arg in pairwise(["", *args]):
            option, separator, value = arg.partition("=")
            is_joined = option.startswith("--") and separator
            if not (value if is_joined else arg).strip():
                named = option if is_joined else before
                raise typer.BadParameter(
                    "It is empty. Nothing was done. Leave it out, or give it a value.",
                    param_hint=named if named.startswith("-") else "an argument",
                )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run a command; exit with what it returns, or with the code of its failure."""
        # An earlier command of this process may have printed JSON.
        OUT.quiet = False
        try:
            # Until `open_home`, only questions are asked: nothing is lost by an exception.
            with stop.raised(), SESSIONS:
                code = super().invoke(ctx)
        except typer.Abort:
            # A question was not answered, and what follows it did not begin.
            typer.echo("\nNothing was changed.", err=True)
            code = ExitCode.INTERRUPTED
        except KeyboardInterrupt:
            code = _interrupted(ctx)
        except Exception as error:  # noqa: BLE001 - it raises what is not expected
            code = _code_of(error, ctx)
        ctx.exit(int(code or ExitCode.DONE))


def _code_of(error: Exception, ctx: typer.Context) -> ExitCode:
    """Show a failure that is expected; return its exit code. Raises any other one.

    Whatever fails once the process is to stop was stopped.
    """
    if stop.is_requested() and not isinstance(error, typer.Exit):
        return _interrupted(ctx)
    if isinstance(error, UnicodeEncodeError) and error.encoding == sys.getfilesystemencoding():
        error = ConfigurationError(
            f"A file name has the character {error.object[error.start]!a}, which is not in the "
            f"encoding of this locale ({error.encoding}). Nothing more was done.",
            "Set the environment variable PYTHONUTF8=1, then run the command again.",
        )
    if not isinstance(error, PartnerSyncError):
        raise error
    show_error(error)
    return error.exit_code


def _interrupted(ctx: typer.Context) -> ExitCode:
    """Say that the command was stopped, what analysts see, and how to go on."""
    remedy = REPEAT.get(ctx.invoked_subcommand or "", RESUME)
    # The terminal may be gone: SIGHUP says so.
    with suppress(OSError):
        typer.echo(f"{INTERRUPTED}\n{remedy}", err=True)
    return ExitCode.INTERRUPTED


root = typer.Typer(
    name="partner-sync",
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
command = root.command


def _group(name: str, panel: str, text: str | None = None) -> typer.Typer:
    """Add a group of commands; one with a text shows its help if no command is named."""
    group = typer.Typer(help=text, no_args_is_help=True) if text else typer.Typer()
    root.add_typer(group, name=name, rich_help_panel=panel)
    return group


connections = _group("connections", SETUP)
configuration = _group("configuration", SETUP, "Agree on the configuration of several machines.")
notify = _group("notify", SETUP, "Send findings to people.")
mapping = _group("mapping", FINANCE, "Choose the fields that reconciliation compares.")
breaks = _group("breaks", FINANCE)
trace = _group("trace", FINANCE, "Trace a record, a break or a month to what was sent.")
own = _group("own", FINANCE, "Compare usage and bills with books of your own.")
close = _group("close", FINANCE, "Sign off months, and see what has changed in them since.")
versions = _group("versions", WAREHOUSE, "List, build and roll back versions.")
