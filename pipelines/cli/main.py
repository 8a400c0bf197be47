"""The program `partner-sync`. A command's module is imported when it is called."""

import signal
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from pipelines.core.errors import ExitCode, PartnerSyncError

SETUP, RUN, WAREHOUSE, TRY = PANELS = "Set up", "Run", "Warehouse", "Try"
HELP = {"help_option_names": ["-h", "--help"]}
INTERRUPTED = """Interrupted. Analysts still see the last published version.
Run `partner-sync sync` within 24 hours to resume what was being read."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Connections = Annotated[
    list[str] | None,
    typer.Option("--connection", "-c", help="Connection; repeatable. Default: all."),
]
Streams = Annotated[
    list[str] | None, typer.Option("--stream", "-s", help="Stream; repeatable. Default: all.")
]
Connection = Annotated[str, typer.Argument(help="Name of the connection.")]
Reason = Annotated[
    str | None, typer.Option(help="Why; kept with your name. Default: the command asks.")
]
NoBuild = Annotated[bool, typer.Option("--no-build", help="Do not build a version now.")]


class Program(TyperGroup):
    """The commands in the order of the panels. An expected failure becomes a message."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the names of the commands, panel by panel."""
        del ctx
        panels = {
            name: getattr(each, "rich_help_panel", "") for name, each in self.commands.items()
        }
        return sorted(panels, key=lambda name: PANELS.index(panels[name]))

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run a command; print a failure and exit with its code."""
        try:
            return super().invoke(ctx)
        except PartnerSyncError as error:
            from pipelines.cli import render

            render.failure(error)
            raise typer.Exit(int(error.exit_code)) from error
        except (KeyboardInterrupt, RuntimeError) as error:
            # DuckDB raises RuntimeError from the KeyboardInterrupt.
            if not isinstance(error.__cause__ or error, KeyboardInterrupt):
                raise
            typer.echo(INTERRUPTED, err=True)
            raise typer.Exit(int(ExitCode.INTERRUPTED)) from error


app = typer.Typer(
    name="partner-sync",
    cls=Program,
    help="Read partners, usage and billing, exact and complete, into DuckDB.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings=HELP,
)
connections = typer.Typer(context_settings=HELP)
app.add_typer(connections, name="connections", rich_help_panel=SETUP)
versions = typer.Typer(
    help="List, build and roll back versions.", no_args_is_help=True, context_settings=HELP
)
app.add_typer(versions, name="versions", rich_help_panel=WAREHOUSE)


def _print_version(value: bool) -> None:  # noqa: FBT001 - Typer's signature of a callback
    if value:
        from importlib.metadata import version

        typer.echo(f"partner-sync {version('partner-sync')}")
        raise typer.Exit


@app.callback()
def options(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Take the options of every command."""


@app.command(rich_help_panel=SETUP)
def init(  # noqa: PLR0913 - a command's parameters are its options
    *,
    name: Annotated[str, typer.Option(help="Name of the connection.")] = "default",
    surface: Annotated[
        Literal["partner", "merchant"], typer.Option(help="Surface of the service.")
    ] = "partner",
    base_url: Annotated[str | None, typer.Option(help="Address of the service.")] = None,
    auth_url: Annotated[str | None, typer.Option(help="Address of the identity provider.")] = None,
    audience: Annotated[str | None, typer.Option(help="API identifier.")] = None,
    client_id: Annotated[str | None, typer.Option(help="Client id.")] = None,
    secret: Annotated[
        str | None, typer.Option(help="NAME of the variable that holds the secret or API key.")
    ] = None,
    secret_file: Annotated[
        str | None, typer.Option(help="File with mode 0600 that holds the secret or API key.")
    ] = None,
    run_sync: Annotated[bool, typer.Option("--sync/--no-sync", help="Sync afterwards.")] = True,
) -> None:
    """Create a home and a connection, check it, then sync. Asks for what no option gives."""
    from pipelines.cli import setup

    answers = {
        "surface": surface,
        "base_url": base_url,
        "auth_url": auth_url,
        "audience": audience,
        "client_id": client_id,
        "secret": secret,
        "secret_file": secret_file,
    }
    setup.init(name, answers, run_sync=run_sync)


@app.command(rich_help_panel=SETUP)
def check(*, connection: Connections = None, json: Json = False) -> None:
    """Check credentials, account and each list of each connection; one request a list."""
    from pipelines.cli import setup

    setup.check(connection, as_json=json)


@connections.callback(invoke_without_command=True)
def list_connections(context: typer.Context, *, json: Json = False) -> None:
    """List connections: surface, address, where the secret is, streams."""
    if context.invoked_subcommand is None:
        from pipelines.cli import setup

        setup.list_connections(as_json=json)


@connections.command()
def accept(connection: Connection, *, reason: Reason = None) -> None:
    """Accept the account that the service now reports for a connection."""
    from pipelines.cli import setup

    setup.accept(connection, reason)


@connections.command()
def unblock(connection: Connection) -> None:
    """Forget a pause that the service asked for (Retry-After)."""
    from pipelines.cli import setup

    setup.unblock(connection)


@app.command(rich_help_panel=RUN)
def sync(
    *,
    connection: Connections = None,
    stream: Streams = None,
    no_build: NoBuild = False,
    json: Json = False,
) -> None:
    """Read lists completely, then build and publish one version of all of them."""
    from pipelines.cli import sync as commands

    commands.sync(connection, stream, build=not no_build, as_json=json)


@app.command(rich_help_panel=RUN)
def plan(
    *,
    connection: Connections = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Request one page of each list that was never read.")
    ] = False,
    json: Json = False,
) -> None:
    """Show how many requests and how much time the next sync takes."""
    from pipelines.cli import sync as commands

    commands.plan(connection, ask=ask, as_json=json)


@app.command(rich_help_panel=RUN)
def status(*, json: Json = False) -> None:
    """Show what analysts see, how fresh and complete it is, and what needs attention."""
    from pipelines.cli import status as commands

    commands.status(as_json=json)


@app.command(rich_help_panel=RUN)
def runs(
    *,
    limit: Annotated[int, typer.Option(min=0, help="Runs shown, newest first (0 = all).")] = 20,
    json: Json = False,
) -> None:
    """List runs: when, what triggered them, requests, outcome."""
    from pipelines.cli import status as commands

    commands.runs(limit, as_json=json)


@app.command(rich_help_panel=RUN)
def approve(
    connection: Connection,
    stream: Annotated[str, typer.Argument(help="Stream whose scan is held.")],
    *,
    reason: Reason = None,
    reject: Annotated[bool, typer.Option("--reject", help="Reject the scan instead.")] = False,
    no_build: NoBuild = False,
) -> None:
    """Approve the held scan of a list, then build a version that contains it."""
    from pipelines.cli import warehouse

    warehouse.approve((connection, stream), reason, reject=reject, build=not no_build)


@versions.command("list")
def list_versions(*, json: Json = False) -> None:
    """List versions: which is published, size, when it was built from what."""
    from pipelines.cli import warehouse

    warehouse.list_versions(as_json=json)


@versions.command()
def build(*, json: Json = False) -> None:
    """Build and publish a version from the scans that wait, without any request."""
    from pipelines.cli import warehouse

    warehouse.build(as_json=json)


@versions.command()
def rollback(
    number: Annotated[
        int | None, typer.Argument(help="Version to roll back to. Default: the previous one.")
    ] = None,
    *,
    reason: Reason = None,
) -> None:
    """Publish an older version again and hold the scans that it does not contain."""
    from pipelines.cli import warehouse

    warehouse.rollback(number, reason)


@versions.command()
def rebuild(*, json: Json = False) -> None:
    """Build a version anew from the archive, without a base and without any request."""
    from pipelines.cli import warehouse

    warehouse.rebuild(as_json=json)


@app.command(rich_help_panel=WAREHOUSE)
def verify(*, json: Json = False) -> None:
    """Compare every scan file and the published version with their digests."""
    from pipelines.cli import warehouse

    warehouse.verify(as_json=json)


@app.command(rich_help_panel=TRY)
def demo(
    home: Annotated[str, typer.Option(help="Folder that the demo empties and fills.")] = ".demo",
) -> None:
    """Start the sandbox, sync it and show three queries with their answers."""
    from pipelines.cli import demo as commands

    commands.demo(home)


@app.command(
    rich_help_panel=TRY,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, **HELP},
    add_help_option=False,
)
def sandbox(context: typer.Context) -> None:
    """Serve a local copy of the service; takes the options of `python -m sandbox`."""
    from pipelines.cli import demo as commands

    commands.sandbox(context.args)


def main() -> None:
    """Run the program. SIGTERM stops it as Ctrl-C does."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    app()


if __name__ == "__main__":
    main()
