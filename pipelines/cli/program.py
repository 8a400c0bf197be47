"""What all commands share: groups, options, and how a failure becomes a message and a code."""

import os
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pipelines.core.errors import ExitCode, PartnerSyncError
from pipelines.core.text import printable

LONGEST_MESSAGE = 2_000  # characters
INTERRUPTED = """Interrupted. Analysts still see the last published version.
Run `partner-sync sync` within 24 hours to resume what was being read."""
HELP = {"help_option_names": ["-h", "--help"]}
SETUP, RUN, FINANCE, WAREHOUSE, TRY = PANELS = "Set up", "Run", "Finance", "Warehouse", "Try"
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Connections = Annotated[
    list[str] | None,
    typer.Option("--connection", "-c", help="Connection; repeatable. Default: all."),
]
Streams = Annotated[
    list[str] | None, typer.Option("--stream", "-s", help="Stream; repeatable. Default: all.")
]
Connection = Annotated[str, typer.Argument(help="Name of the connection.")]
# Without a terminal, nobody can be asked: the option is required there.
Reason = Annotated[str, typer.Option(prompt=os.isatty(0), help="Why; kept with your name.")]
NoBuild = Annotated[bool, typer.Option("--no-build", help="Do not build a version now.")]
Text = str | None


class Program(TyperGroup):
    """Commands that return their exit code. An expected failure becomes a message."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the commands in the order in which the help shows their groups."""
        panel = {
            name: getattr(each, "rich_help_panel", TRY) for name, each in self.commands.items()
        }
        return sorted(super().list_commands(ctx), key=lambda name: PANELS.index(panel[name]))

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run a command; exit with what it returns, or with the code of its failure."""
        try:
            code = super().invoke(ctx)
        except PartnerSyncError as error:
            typer.secho("Error: ", err=True, nl=False, fg="red", bold=True)
            for text in filter(None, (str(error), error.remedy)):
                typer.echo(printable(text, LONGEST_MESSAGE), err=True)
            code = error.exit_code
        except (KeyboardInterrupt, RuntimeError) as error:
            # DuckDB raises RuntimeError from the KeyboardInterrupt.
            if not isinstance(error.__cause__ or error, KeyboardInterrupt):
                raise
            typer.echo(INTERRUPTED, err=True)
            code = ExitCode.INTERRUPTED
        ctx.exit(int(code or ExitCode.DONE))


program = typer.Typer(
    name="partner-sync",
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings=HELP,
)
connections = typer.Typer(context_settings=HELP)
program.add_typer(connections, name="connections", rich_help_panel=SETUP)
notify = typer.Typer(help="Send findings to people.", no_args_is_help=True, context_settings=HELP)
program.add_typer(notify, name="notify", rich_help_panel=SETUP)
mapping = typer.Typer(
    help="Choose the fields that reconciliation compares.",
    no_args_is_help=True,
    context_settings=HELP,
)
program.add_typer(mapping, name="mapping", rich_help_panel=FINANCE)
breaks = typer.Typer(context_settings=HELP)
program.add_typer(breaks, name="breaks", rich_help_panel=FINANCE)
trace = typer.Typer(
    help="Follow a record, a break or a month to what was sent.",
    no_args_is_help=True,
    context_settings=HELP,
)
program.add_typer(trace, name="trace", rich_help_panel=FINANCE)
close = typer.Typer(
    help="Sign off months, and see what changed in them since.",
    no_args_is_help=True,
    context_settings=HELP,
)
program.add_typer(close, name="close", rich_help_panel=FINANCE)
versions = typer.Typer(
    help="List, build and roll back versions.", no_args_is_help=True, context_settings=HELP
)
program.add_typer(versions, name="versions", rich_help_panel=WAREHOUSE)
