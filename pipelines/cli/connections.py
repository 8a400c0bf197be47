"""The verbs `connections add`, `list`, `test` and `accept`: several sets of credentials.

Secrets are never asked for: only the name of the environment variable that holds one.
"""

import getpass
from typing import Annotated, Any, cast

import httpx
import typer

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.run import Standing

QUESTIONS = {
    "base_url": "Address of the service",
    "auth_url": "Address of the identity provider",
    "audience": "Audience (the API identifier)",
    "client_id": "Client id",
    "secret": "Name of the environment variable that holds the secret (never the secret itself)",
}
OF_BOTH = ("base_url", "secret")
app = typer.Typer()
group = typer.Typer(help="Several sets of credentials, secrets by name of environment variable.")
app.add_typer(group, name="connections")


@group.callback(invoke_without_command=True)
def connections(context: typer.Context) -> None:
    """List the connections, unless a verb follows."""
    if context.invoked_subcommand is None:
        list_()


@group.command()
def add(  # noqa: PLR0913, PLR0917 a signature of Typer's: one option a field
    name: str,
    surface: Annotated[
        str, typer.Option(help="partner (tokens) or merchant (API key).")
    ] = "partner",
    base_url: str | None = None,
    auth_url: str | None = None,
    audience: str | None = None,
    client_id: str | None = None,
    secret: Annotated[
        str | None, typer.Option(help="NAME of the variable with the secret or API key.")
    ] = None,
    secret_file: Annotated[str | None, typer.Option(help="0600 file with it; full path.")] = None,
) -> None:
    """Write a connection into connections.toml; what is missing is asked for."""
    given = {"base_url": base_url, "auth_url": auth_url, "audience": audience}
    given |= {"client_id": client_id, "secret": secret, "secret_file": secret_file}
    needed = [each for each in QUESTIONS if surface == "partner" or each in OF_BOTH]
    for each in needed:
        if given[each] is None and not (each == "secret" and secret_file):
            given[each] = cast("str", typer.prompt(QUESTIONS[each]))
    fields = {"surface": surface} | {each: value for each, value in given.items() if value}
    for each in settings.load().add_connection(name, fields):
        screen.OUT.print(f"connection {each} is in connections.toml")
    screen.OUT.print(f"try it: partner-sync connections test {name}")


@group.command("list")
def list_() -> None:
    """List the connections: surface, host, secret there or not, identity, last run."""
    with run.open(settings.load()) as session:
        rows = [_row(each) for each in run.standings(session)]
    screen.show(rows)


def _row(each: Standing) -> dict[str, Any]:
    last = (
        f"{each.last[0]:%Y-%m-%d %H:%M} {each.last[1] or 'running or killed'}" if each.last else ""
    )
    return {
        "name": each.connection.name,
        "surface": each.connection.surface,
        "host": httpx.URL(each.connection.base_url).host,
        "secret": "there" if each.connection.secret.there else "missing",
        "lands for": each.pinned.identity.words if each.pinned else "nothing landed yet",
        "since (UTC)": f"{each.pinned.at:%Y-%m-%d %H:%M}" if each.pinned else "",
        "last run (UTC)": last,
    }


@group.command("test")
def try_(
    name: Annotated[str | None, typer.Argument(help="All, where none is named.")] = None,
) -> None:
    """Ask each service who we are, and compare it with whom the connection lands for."""
    with run.open(settings.load()) as session:
        names = [name] if name else list(session.settings.connections())
        tried = [run.test(session, session.settings.connection(each)) for each in names]
    rows = [
        {"connection": each.route, "answer": each.words, "": "no" if each.error else "yes"}
        for each in tried
    ]
    screen.show(rows)
    raise typer.Exit(1 if any(each.error for each in tried) else 0)


@group.command()
def accept(
    name: str,
    by: Annotated[str | None, typer.Option(help="Who decides; the user of this machine.")] = None,
) -> None:
    """Let a connection land for whom the service says that it is now."""
    with run.open(settings.load()) as session:
        person = by or getpass.getuser()
        found = run.accept(session, session.settings.connection(name), person)
    screen.OUT.print(f"connection {name} lands for {found} from now on", markup=False)
