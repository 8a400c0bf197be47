"""The program `partner-sync`: its commands, each of which returns its exit code."""

import os
import signal
from importlib.metadata import version
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from pipelines import app
from pipelines.cli.terminal import line, print_json, run_sync, show, show_status, shown_progress
from pipelines.core.errors import ExitCode, PartnerSyncError
from pipelines.core.text import printable

LONGEST_MESSAGE = 2_000  # characters
INTERRUPTED = """Interrupted. Analysts still see the last published version.
Run `partner-sync sync` within 24 hours to resume what was being read."""
HELP = {"help_option_names": ["-h", "--help"]}
SETUP, RUN, WAREHOUSE, TRY = PANELS = "Set up", "Run", "Warehouse", "Try"
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
versions = typer.Typer(
    help="List, build and roll back versions.", no_args_is_help=True, context_settings=HELP
)
program.add_typer(versions, name="versions", rich_help_panel=WAREHOUSE)


def _print_version(value: bool) -> None:  # noqa: FBT001 - Typer's signature of a callback
    if value:
        typer.echo(f"partner-sync {version('partner-sync')}")
        raise typer.Exit


@program.callback()
def options(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Read partners, usage and billing, exact and complete, into DuckDB."""


@program.command(rich_help_panel=SETUP)
def init(  # noqa: PLR0913 - a command's parameters are its options
    *,
    name: Annotated[str, typer.Option(help="Name of the connection.")] = "default",
    surface: Annotated[
        Literal["partner", "merchant"], typer.Option(help="Surface of the service.")
    ] = "partner",
    base_url: Annotated[Text, typer.Option(help="Address of the service.")] = None,
    auth_url: Annotated[Text, typer.Option(help="Address of the identity provider.")] = None,
    audience: Annotated[Text, typer.Option(help="API identifier.")] = None,
    client_id: Annotated[Text, typer.Option(help="Client id.")] = None,
    secret: Annotated[
        Text, typer.Option(help="NAME of the variable that holds the secret or API key.")
    ] = None,
    secret_file: Annotated[
        Text, typer.Option(help="File with mode 0600 that holds the secret or API key.")
    ] = None,
    with_sync: Annotated[bool, typer.Option("--sync/--no-sync", help="Sync afterwards.")] = True,
) -> int:
    """Create a home and a connection, check it, then sync. Asks for what no option gives."""
    from pipelines.cli import setup

    setup.add_connection(name, locals())
    code = check(connection=[name])
    return sync(connection=[name]) if with_sync and code == ExitCode.DONE else code


@program.command(rich_help_panel=SETUP)
def check(*, connection: Connections = None, json: Json = False) -> int:
    """Check credentials, account and each list of each connection; one request a list."""
    with app.session.open_session() as session:
        rows = app.plan.check_connections(session, connection)
    show(rows, as_json=json)
    return ExitCode.DONE if all(row["passed"] for row in rows) else ExitCode.USAGE


@connections.callback(invoke_without_command=True)
def list_connections(context: typer.Context, *, json: Json = False) -> None:
    """List connections: surface, address, where the secret is, streams."""
    if context.invoked_subcommand is None:
        with app.session.open_session() as session:
            show(app.connect.list_connections(session), as_json=json)


@connections.command()
def accept(connection: Connection, *, reason: Reason) -> None:
    """Accept the account that the service now reports for a connection."""
    with app.session.open_session() as session:
        line(app.connect.accept_account(session, connection, reason))


@connections.command()
def unblock(connection: Connection) -> None:
    """Forget a pause that the service asked for (Retry-After)."""
    with app.session.open_session() as session:
        line(app.connect.forget_pause(session, connection))


@program.command(rich_help_panel=RUN)
def sync(
    *,
    connection: Connections = None,
    stream: Streams = None,
    no_build: NoBuild = False,
    json: Json = False,
) -> int:
    """Read lists completely, then build and publish one version of all of them."""
    with app.session.open_session() as session:
        requests = app.results.requests_for(session, connection, stream)
        build = None if no_build else app.sync.build_version
        return run_sync(session, requests, build, as_json=json)


@program.command(rich_help_panel=RUN)
def plan(
    *,
    connection: Connections = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Request one page of each list that was never read.")
    ] = False,
    json: Json = False,
) -> None:
    """Show how many requests and how much time the next sync takes."""
    with app.session.open_session() as session:
        rows = app.plan.plan_sync(session, connection, ask=ask)
    show(rows, as_json=json)
    if not json:
        line(app.plan.total(rows))


@program.command(rich_help_panel=RUN)
def status(*, json: Json = False) -> int:
    """Show what analysts see, how fresh and complete it is, and what needs attention."""
    with app.session.open_session() as session:
        found = app.checkup.status(session)
    print_json(found) if json else show_status(found)
    return int(found["exit_code"])


@program.command(rich_help_panel=RUN)
def runs(
    *,
    limit: Annotated[int, typer.Option(min=0, help="Runs shown, newest first (0 = all).")] = 20,
    json: Json = False,
) -> None:
    """List runs: when, what triggered them, requests, outcome."""
    with app.session.open_session() as session:
        show(app.checkup.recent_runs(session, limit), as_json=json, what="runs")


@program.command(rich_help_panel=RUN)
def approve(
    connection: Connection,
    stream: Annotated[str, typer.Argument(help="Stream whose scan is held.")],
    *,
    reason: Reason,
    reject: Annotated[bool, typer.Option("--reject", help="Reject the scan instead.")] = False,
    no_build: NoBuild = False,
) -> int:
    """Approve the held scan of a list, then build a version that contains it."""
    with app.session.open_session() as session:
        about = (connection, stream)
        line(app.versions.decide_held_scan(session, *about, reason, reject=reject))
        if reject or no_build:
            return ExitCode.DONE
        return run_sync(session, [], app.sync.build_version)


@versions.command("list")
def list_versions(*, json: Json = False) -> None:
    """List versions: which is published, size, when it was built from what."""
    with app.session.open_session() as session:
        show(app.versions.list_versions(session), as_json=json, what="versions")


@versions.command()
def build(*, json: Json = False) -> int:
    """Build and publish a version from the scans that wait, without any request."""
    with app.session.open_session() as session:
        return run_sync(session, [], app.sync.build_version, as_json=json)


@versions.command()
def rollback(
    number: Annotated[
        int | None, typer.Argument(help="Version to roll back to. Default: the previous one.")
    ] = None,
    *,
    reason: Reason,
) -> None:
    """Publish an older version again and hold the scans that it does not contain."""
    with app.session.open_session() as session, shown_progress() as progress:
        text = app.versions.roll_back(session, number, reason, progress)
    line(text)


@versions.command()
def rebuild(*, json: Json = False) -> int:
    """Build a version anew from the archive, without a base and without any request."""
    with app.session.open_session() as session:
        return run_sync(session, [], app.versions.rebuild, as_json=json)


@program.command(rich_help_panel=WAREHOUSE)
def verify(*, json: Json = False) -> int:
    """Compare every scan file and the published version with their digests."""
    with app.session.open_session() as session:
        found = app.checkup.verify_files(session)
    damaged = [{"message": str(error), "remedy": error.remedy} for error in found.damaged]
    if json:
        print_json({"files": found.files, "damaged": damaged})
    else:
        show(damaged, as_json=False)
        line(f"{found.files:,} files verified, {len(damaged):,} damaged.")
    return ExitCode.NEEDS_ATTENTION if damaged else ExitCode.DONE


@program.command(rich_help_panel=TRY)
def demo(
    home: Annotated[str, typer.Option(help="Folder that the demo empties and fills.")] = ".demo",
) -> int:
    """Start the sandbox, sync it and show three queries with their answers."""
    from pipelines.cli import demo as commands

    return commands.demo(home)


@program.command(
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
    program()


if __name__ == "__main__":
    main()
