"""The program `partner-sync`: commands that set up, read and show; the others are beside it."""

import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from pipelines import app
from pipelines.cli import breaks, close, demo, finance, own, program, statement, trace, warehouse
from pipelines.cli.outcomes import run_build, run_sync, show_status
from pipelines.cli.terminal import LOG, line, open_home, show, show_error
from pipelines.core import stop
from pipelines.core.errors import ConfigurationError, ExitCode
from pipelines.core.text import from_system, printable

# Each of these modules adds its commands to `program` when it is imported.
__all__ = [
    "breaks", "close", "demo", "finance", "main", "own", "program", "statement", "trace",
    "warehouse",
]  # fmt: skip
Text = str | None
Connections = Annotated[
    list[str] | None,
    Option("--connection", "-c", help="Connection; repeatable. Default: all."),
]


def _print_version(value: bool) -> None:  # noqa: FBT001 - Typer's signature of a callback
    if value:
        typer.echo(f"partner-sync {version('partner-sync')}")
        typer.echo(app.format_numbers.sentence(app.format_numbers.written()))
        raise typer.Exit


@program.root.callback()
def options(
    *,
    _version: Annotated[
        bool,
        Option(
            "--version", callback=_print_version, is_eager=True, help="Show version and formats."
        ),
    ] = False,
) -> None:
    """Read partners, usage and billing into DuckDB, exactly and completely."""


def _ask(questions: dict[str, str]) -> dict[str, str]:
    """Return an answer to each question. Raises ConfigurationError where nobody can answer."""
    if questions and not sys.stdin.isatty():
        options = ", ".join(f"--{field.replace('_', '-')}" for field in questions)
        raise ConfigurationError(f"Without a terminal, these options are needed: {options}.")
    return {
        field: typer.prompt(question, value_proc=partial(_checked, field))
        for field, question in questions.items()
    }


def _checked(field: str, answer: str) -> str:
    """Return an answer. Raises BadParameter for a wrong one: it is asked for again."""
    try:
        app.connect.check_field(field, answer)
    except ConfigurationError as error:
        raise typer.BadParameter(printable(error)) from error
    return answer


@program.command(rich_help_panel=program.SETUP)
def init(  # noqa: PLR0913 - a command's parameters are its options
    *,
    name: Annotated[str, Option(help="Name of the connection.")] = "default",
    surface: Annotated[
        Literal["partner", "merchant"], Option(help="Surface of the service.")
    ] = "partner",
    base_url: Annotated[Text, Option(help="Address of the service.")] = None,
    auth_url: Annotated[Text, Option(help="Address of the identity provider.")] = None,
    audience: Annotated[Text, Option(help="API identifier.")] = None,
    client_id: Annotated[Text, Option(help="Client ID.")] = None,
    secret: Annotated[Text, Option(help="Name of the variable with the secret or API key.")] = None,
    secret_file: Annotated[
        Text, Option(help="File (mode 0600) with the secret or API key.")
    ] = None,
    secret_command: Annotated[
        Text, Option(help="Command that prints the secret or API key.")
    ] = None,
    with_sync: Annotated[bool, Option("--sync/--no-sync", help="Sync afterwards.")] = True,
) -> int:
    """Create a home and a connection, check it, then sync. Asks for missing options."""
    fields: dict[str, str | None] = {
        "surface": surface,
        "base_url": base_url,
        "auth_url": auth_url,
        "audience": audience,
        "client_id": client_id,
        "secret": secret,
        "secret_file": secret_file,
        "secret_command": secret_command,
    }
    fields.update(_ask(app.connect.questions(fields)))
    for sentence in app.connect.add_connection(name, fields):
        line(sentence)
    rows = app.plan.check_connections(open_home(), [name], skip_refused=True)
    code = _show_checked(rows)
    if code != ExitCode.DONE:
        line(f"Correct [{name}] in the file, then run `partner-sync check -c {name}`.")
        return code
    if not with_sync:
        return code
    return sync(connection=[name])


@program.command(rich_help_panel=program.SETUP)
def check(*, connection: Connections = None, _json: program.Json = False) -> int:
    """Check credentials, account and lists of each connection, with one request per list."""
    return _show_checked(app.plan.check_connections(open_home(), connection))


def _show_checked(rows: Sequence[dict[str, Any]]) -> int:
    """Print the results of checks; return the exit code."""
    show(rows)
    return ExitCode.DONE if all(row["passed"] for row in rows) else ExitCode.USAGE


@program.command(rich_help_panel=program.SETUP)
def discover(
    connection: program.Connection,
    *,
    description: Annotated[
        str, Option(help="Path of the interface description (OpenAPI, JSON).")
    ] = "/docs/openapi.json",
    _json: program.Json = False,
) -> None:
    """Show the lists in the interface description, and the settings that enable them."""
    session = open_home()
    rows = app.discover.discover(session, connection, description)
    columns = ("path", "surface", "state")
    show(rows, columns, if_empty="The interface description shows no list.")
    settings = list[str]()
    for row in rows:
        settings += row["lines"].splitlines()
    if settings:
        line(f"To read a list, add its lines to {session.home.settings_file}:")
    for text in settings:
        line(text)


@program.connections.callback(invoke_without_command=True)
def list_connections(context: typer.Context, *, _json: program.Json = False) -> None:
    """List connections with surface, address, place of the secret, and streams."""
    if context.invoked_subcommand is None:
        show(app.connect.list_connections(open_home()))


@program.connections.command()
def accept(connection: program.Connection, *, reason: program.Reason) -> None:
    """Accept the account that the service now reports for a connection."""
    line(app.connect.accept_account(open_home(), connection, reason))


@program.connections.command()
def unblock(connection: program.Connection) -> None:
    """Forget a pause that the service asked for (Retry-After)."""
    line(app.connect.forget_pause(open_home(), connection))


@program.configuration.command("accept")
def accept_configuration(*, reason: program.Reason) -> None:
    """Let the configuration of this machine be that of all machines of its home."""
    session = open_home(accept_reason=reason)
    if session.settings.files is None:
        line("This home has one configuration: it is in a folder. Nothing was changed.")
        return
    line("The other machines are refused until they have the same files.")


@program.notify.command("test")
def send_test(*, _json: program.Json = False) -> int:
    """Send a test message to every channel of the setting `notify`."""
    rows = app.notify.send_test(open_home())
    show(rows, if_empty="No channel is configured. Set notify in settings.toml.")
    return ExitCode.DONE if rows and all(row["sent"] for row in rows) else ExitCode.USAGE


@program.command(rich_help_panel=program.RUN)
def sync(
    *,
    connection: Connections = None,
    stream: Annotated[
        list[str] | None, Option("--stream", "-s", help="Stream; repeatable. Default: all.")
    ] = None,
    no_build: program.NoBuild = False,
    _json: program.Json = False,
) -> int:
    """Read lists completely, then build and publish one version with all of them."""
    session = open_home()
    chosen = session.lists(connection, stream)
    requests = [app.results.ReadRequest(name, tuple(stream or ())) for name in chosen]
    for name in connection or session.settings.connections():
        if name not in chosen and not stream:
            LOG.warning("Connection %s reads no list. See `partner-sync discover`.", name)
    # Scans of an earlier sync, or of a connection that was removed, may wait for a build.
    if not requests and not no_build:
        return run_build(session)
    return run_sync(session, requests, no_build=no_build)


@program.command(rich_help_panel=program.RUN)
def plan(
    *,
    connection: Connections = None,
    ask: Annotated[
        bool, Option("--ask", help="Request one page of each list that was never read.")
    ] = False,
    _json: program.Json = False,
) -> None:
    """Show how many requests and how much time the next sync takes."""
    rows = app.plan.plan_sync(open_home(), connection, ask=ask)
    show(rows)
    line(app.plan.total(rows))


@program.command(rich_help_panel=program.RUN)
def status(*, _json: program.Json = False) -> int:
    """Show what analysts see, how fresh and complete it is, and what needs attention."""
    found = app.checkup.status(open_home())
    show_status(found)
    return int(found["exit_code"])


@program.command(rich_help_panel=program.RUN)
def runs(
    *,
    limit: Annotated[int, Option(min=0, help="Runs shown, newest first (0 = all).")] = 20,
    _json: program.Json = False,
) -> None:
    """List runs with their time, trigger, requests and outcome."""
    rows = app.checkup.recent_runs(open_home(), limit)
    show(rows, if_empty="There are no runs yet. Run `partner-sync sync`.")


@program.command(rich_help_panel=program.RUN)
def approve(
    connection: program.Connection,
    stream: Annotated[str, Argument(help="Stream whose scan is held.")],
    *,
    reason: program.Reason,
    reject: Annotated[bool, Option("--reject", help="Reject the scan instead.")] = False,
    no_build: program.NoBuild = False,
) -> int:
    """Approve the held scan of a list, then build a version that contains it."""
    session = open_home()
    line(app.held_scans.decide_held_scan(session, connection, stream, reason, reject=reject))
    if reject or no_build:
        return ExitCode.DONE
    return run_build(session)


def _decode_arguments() -> None:
    """Read arguments as UTF-8 where the locale has another encoding. Exits with 2 if they are not.

    Python hands over the bytes that it cannot decode as lone surrogates, which DuckDB, SQLite and
    JSON refuse.
    """
    for number, text in enumerate(sys.argv):
        try:
            sys.argv[number] = from_system(text)
        except UnicodeDecodeError:
            error = ConfigurationError(
                f"Argument {number}, `{printable(text)}`, is not UTF-8 text. Nothing was changed.",
                "Type it again in a terminal that uses UTF-8.",
            )
            show_error(error)
            sys.exit(int(error.exit_code))


def main() -> None:
    """Run the program. SIGTERM and SIGHUP stop it as Ctrl-C does, at the next safe point.

    Characters that the encoding of the output lacks are escaped.
    """
    stop.listen()
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, TextIOWrapper):
            output.reconfigure(errors="backslashreplace")
    try:
        _decode_arguments()
        program.root()
    finally:
        stop.ignore()


if __name__ == "__main__":
    main()
