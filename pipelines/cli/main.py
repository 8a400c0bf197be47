"""The program `partner-sync`: its commands and options.

Every command imports its module when it is called, so that `--help` stays light.
"""

import sys
from typing import Annotated

import typer

SETUP, RUN, WAREHOUSE, TRY = "Set up", "Run", "Warehouse", "Try"
HELP = {"help_option_names": ["-h", "--help"]}
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Connections = Annotated[
    list[str] | None,
    typer.Option("--connection", "-c", help="Connection; repeatable. Default: all."),
]
Streams = Annotated[
    list[str] | None, typer.Option("--stream", "-s", help="Stream; repeatable. Default: all.")
]
Reason = Annotated[str, typer.Option(help="Why; kept with your name.")]
NoBuild = Annotated[bool, typer.Option("--no-build", help="Do not build a version now.")]
OptionalText = Annotated[str | None, typer.Option()]

app = typer.Typer(
    name="partner-sync",
    help="Partners, usage and billing of a payments service, exact and complete, in DuckDB.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings=HELP,
)
versions = typer.Typer(no_args_is_help=True, context_settings=HELP)
app.add_typer(
    versions,
    name="versions",
    help="List, build and roll back versions.",
    rich_help_panel=WAREHOUSE,
)


def _print_version(value: bool) -> None:  # noqa: FBT001 - Typer's signature of a callback
    if value:
        from importlib.metadata import version

        sys.stdout.write(f"partner-sync {version('partner-sync')}\n")
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
    surface: Annotated[str, typer.Option(help="partner or merchant.")] = "partner",
    base_url: Annotated[str | None, typer.Option(help="Address of the service.")] = None,
    auth_url: Annotated[str | None, typer.Option(help="Address of the identity provider.")] = None,
    audience: Annotated[str | None, typer.Option(help="The API identifier.")] = None,
    client_id: Annotated[str | None, typer.Option(help="The client.")] = None,
    secret: Annotated[
        str | None, typer.Option(help="NAME of the variable that holds the secret or API key.")
    ] = None,
    secret_file: Annotated[str | None, typer.Option(help="File with mode 0600.")] = None,
    run_sync: Annotated[bool, typer.Option("--sync/--no-sync", help="Sync afterwards.")] = True,
) -> None:
    """Create a home and a connection; ask for what no option gives, check it, then sync."""
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
    """Check settings, credentials and each list of each connection, with one request a list."""
    from pipelines.cli import setup

    setup.check(connection, as_json=json)


@app.command(rich_help_panel=SETUP)
def connections(*, json: Json = False) -> None:
    """List connections: surface, address, where the secret is, streams."""
    from pipelines.cli import setup

    setup.connections(as_json=json)


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
def plan(*, connection: Connections = None, json: Json = False) -> None:
    """Show how many requests and minutes the next sync takes, from the last scans."""
    from pipelines.cli import sync as commands

    commands.plan(connection, as_json=json)


@app.command(rich_help_panel=RUN)
def status(*, json: Json = False) -> None:
    """Show what analysts see, how fresh and complete it is, and what needs attention."""
    from pipelines.cli import sync as commands

    commands.status(as_json=json)


@app.command(rich_help_panel=RUN)
def runs(
    *,
    limit: Annotated[int, typer.Option(min=0, help="Runs shown, newest first (0: all).")] = 20,
    json: Json = False,
) -> None:
    """List runs: when, what triggered them, requests, outcome."""
    from pipelines.cli import sync as commands

    commands.runs(limit, as_json=json)


@app.command(rich_help_panel=RUN)
def approve(
    connection: Annotated[str, typer.Argument(help="Connection of the held scan.")],
    stream: Annotated[str, typer.Argument(help="Stream of the held scan.")],
    *,
    reason: Reason,
    reject: Annotated[bool, typer.Option("--reject", help="Reject the scan instead.")] = False,
    no_build: NoBuild = False,
) -> None:
    """Approve the held scan of a list, then build a version that contains it."""
    from pipelines.cli import sync as commands

    commands.approve(connection, stream, reason, reject=reject, build=not no_build)


@versions.command("list")
def list_versions(*, json: Json = False) -> None:
    """List versions: published, size, scans, when."""
    from pipelines.cli import warehouse

    warehouse.list_versions(as_json=json)


@versions.command()
def build(*, json: Json = False) -> None:
    """Build a version from the scans that wait, without any request."""
    from pipelines.cli import warehouse

    warehouse.build(as_json=json)


@versions.command()
def rollback(
    number: Annotated[
        int | None, typer.Argument(help="Version to roll back to. Default: the previous one.")
    ] = None,
    *,
    reason: Reason,
) -> None:
    """Publish an older version again and hold the scans that it does not contain."""
    from pipelines.cli import warehouse

    warehouse.rollback(number, reason)


@versions.command()
def rebuild(*, json: Json = False) -> None:
    """Build a version anew from the archive, without a base and without any request."""
    from pipelines.cli import warehouse

    warehouse.rebuild(as_json=json)


@app.command(rich_help_panel=TRY)
def demo(
    home: Annotated[str, typer.Option(help="Folder that the demo empties and fills.")] = ".demo",
) -> None:
    """Start the sandbox, sync it into DuckDB and show three queries with their answers."""
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
    """Run the program. An expected failure becomes a message and an exit code."""
    try:
        app()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted. Run the command again to go on.\n")
        sys.exit(130)
    except Exception as error:
        from pipelines.cli import render

        code = render.failure(error)
        if code is None:
            raise
        sys.exit(code)


if __name__ == "__main__":
    main()
