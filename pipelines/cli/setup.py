"""`init`, `check`, `connections`."""

from dataclasses import asdict
from typing import Any

import typer

from pipelines.app.accounts import accept_account, forget_pause
from pipelines.app.preflight import Preflight, preflight
from pipelines.app.session import open_session
from pipelines.cli import people, render, sync
from pipelines.config.connections import PARTNER_FIELDS, Connection, add_connection
from pipelines.config.home import Home
from pipelines.config.settings import Settings
from pipelines.core.errors import ExitCode
from pipelines.core.files import write_durably

QUESTIONS = {
    "base_url": "Address of the service",
    "auth_url": "Address of the identity provider",
    "audience": "API identifier (audience)",
    "client_id": "Client id",
    "secret": "Name of the environment variable that holds the secret",
}
NOT_IN_FILE = {"home", "streams"}


def init(name: str, answers: dict[str, str | None], *, run_sync: bool) -> None:
    """Write commented configuration, check the connection, then sync."""
    home = Home.from_environment()
    fields = _complete(answers)
    home.prepare()
    if not home.connections_file.exists():
        write_durably(home.connections_file, commented_connections().encode())
    if not home.settings_file.exists():
        write_durably(home.settings_file, commented_settings().encode())
    connection = add_connection(home.connections_file, name, fields)
    render.line(f"Added connection `{name}` to {home.connections_file}.")
    render.line(f"Every setting is explained in {home.settings_file}.")
    with open_session(home) as session:
        results = preflight(session, [connection.name])
    _show(results)
    if not all(result.passed for result in results):
        render.line(f"Correct {home.connections_file}, then run `partner-sync check`.")
        raise typer.Exit(int(ExitCode.USAGE))
    if run_sync:
        sync.sync([name], None, build=True, as_json=False)


def _complete(answers: dict[str, str | None]) -> dict[str, Any]:
    """Ask for what the options do not give."""
    is_merchant = answers["surface"] == "merchant"
    missing = {
        name: question
        for name, question in QUESTIONS.items()
        if not answers[name]
        and not (is_merchant and name in PARTNER_FIELDS)
        and not (name == "secret" and answers["secret_file"])
    }
    given = {name: value for name, value in answers.items() if value}
    return given | people.ask(missing)


def commented_connections() -> str:
    """Return the head of a connections file: every field, explained."""
    lines = ["# Connections of partner-sync: one table for each set of credentials. Fields:"]
    for name, field in Connection.model_fields.items():
        if field.description:
            lines.append(f"#   {name}: {field.description}")
    return "\n".join([*lines, ""])


def commented_settings() -> str:
    """Return a settings file in which every setting is explained and has its default."""
    lines = ["# Settings of partner-sync. Each has its default; remove the # to change one."]
    for name, field in Settings.model_fields.items():
        if name in NOT_IN_FILE:
            continue
        default = field.default
        value = f'"{default}"' if isinstance(default, str) else str(default).lower()
        shown = '"postgresql://user@host/database"' if default is None else value
        lines += ["", f"# {field.description}", f"# {name} = {shown}"]
    return "\n".join([*lines, "", "# [streams.usage]", '# key = "usageId"', ""])


def check(connections: list[str] | None, *, as_json: bool) -> None:
    """Print what each connection may read."""
    with open_session() as session:
        results = preflight(session, connections)
    if as_json:
        render.as_json(results)
    else:
        _show(results)
    if not all(result.passed for result in results):
        raise typer.Exit(int(ExitCode.USAGE))


def _show(results: list[Preflight]) -> None:
    columns = {name: name for name in ("connection", "checked", "passed", "message")}
    render.table([asdict(result) for result in results], columns)
    for remedy in dict.fromkeys(result.remedy for result in results):
        render.remedy(remedy)


def list_connections(*, as_json: bool) -> None:
    """Print connections; secrets are named, never shown."""
    with open_session() as session:
        settings = session.settings
        rows: list[dict[str, Any]] = [
            {
                "connection": name,
                "surface": each.surface,
                "base_url": each.base_url,
                "client_id": each.client_id,
                "secret": each.secret or str(each.secret_file),
                "streams": [stream.name for stream in settings.streams_of(each)],
            }
            for name, each in settings.connections().items()
        ]
    if as_json:
        render.as_json(rows)
    else:
        render.table([row | {"streams": ", ".join(row["streams"])} for row in rows])


def accept(connection: str, reason: str | None) -> None:
    """Accept a new identity of a connection's account."""
    with open_session() as session:
        session.settings.connection(connection)
        render.line(accept_account(session, connection, people.verdict(reason)))


def unblock(connection: str) -> None:
    """Forget a Retry-After of a connection."""
    with open_session() as session:
        render.line(forget_pause(session, connection))
