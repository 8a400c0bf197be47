"""`init`, `check`, `connections`."""

import sys
from typing import Any

import typer

from pipelines.app.preflight import Preflight, preflight
from pipelines.app.session import open_session
from pipelines.cli import render, sync
from pipelines.config.connections import PARTNER_FIELDS, add_connection
from pipelines.config.home import Home
from pipelines.config.settings import Settings
from pipelines.core.errors import ConfigurationError, ExitCode
from pipelines.core.files import write_durably

QUESTIONS = {
    "base_url": "Address of the service",
    "auth_url": "Address of the identity provider",
    "audience": "API identifier (audience)",
    "client_id": "Client id",
    "secret": "Name of the environment variable that holds the secret",
}
NOT_SETTABLE = {"home", "streams"}


def init(name: str, answers: dict[str, str | None], *, run_sync: bool) -> None:
    """Write commented configuration, check the connection, then sync."""
    home = Home.from_environment().prepare()
    connection = add_connection(home.connections_file, name, _complete(answers))
    if not home.settings_file.exists():
        write_durably(home.settings_file, commented_settings().encode())
    render.line(f"Wrote {home.connections_file} and {home.settings_file}.")
    with open_session(home) as session:
        results = preflight(session, [connection.name])
    _show(results)
    if not all(result.passed for result in results):
        raise typer.Exit(int(ExitCode.USAGE))
    if run_sync:
        sync.sync([name], None, build=True, as_json=False)


def _complete(answers: dict[str, str | None]) -> dict[str, Any]:
    """Ask for what the options do not give; without a terminal, name what is missing."""
    merchant = answers["surface"] == "merchant"
    needed = [name for name in QUESTIONS if not (merchant and name in PARTNER_FIELDS)]
    missing = [
        name
        for name in needed
        if not answers[name] and not (name == "secret" and answers["secret_file"])
    ]
    if missing and not sys.stdin.isatty():
        options = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        raise ConfigurationError(f"Without a terminal, these options are needed: {options}.")
    asked = {name: typer.prompt(QUESTIONS[name]) for name in missing}
    return {name: value for name, value in (answers | asked).items() if value}


def commented_settings() -> str:
    """Return a settings file in which every setting is explained and has its default."""
    lines = ["# Settings of partner-sync. Each has its default; remove the # to change one."]
    for name, field in Settings.model_fields.items():
        if name in NOT_SETTABLE:
            continue
        default = field.default
        shown = f'"{default}"' if isinstance(default, str) else str(default).lower()
        value = '"postgresql://host/database"' if default is None else shown
        lines += ["", f"# {field.description}", f"# {name} = {value}"]
    lines += ["", "# [streams.usage]", '# key = "usageId"', ""]
    return "\n".join(lines)


def check(connections: list[str] | None, *, as_json: bool) -> None:
    """Print what each connection may read."""
    with open_session() as session:
        results = preflight(session, connections)
    if as_json:
        render.as_json(results)
    else:
        _show(results)
    if not all(result.passed for result in results):
        raise typer.Exit(int(ExitCode.NEEDS_ATTENTION))


def _show(results: list[Preflight]) -> None:
    render.table(
        [
            {
                "connection": result.connection,
                "checked": result.subject,
                "passed": result.passed,
                "result": result.message,
            }
            for result in results
        ]
    )
    for remedy in dict.fromkeys(result.remedy for result in results if result.remedy):
        render.line(remedy)


def connections(*, as_json: bool) -> None:
    """Print connections; secrets are named, never shown."""
    with open_session() as session:
        settings = session.settings
        rows: list[dict[str, object]] = [
            {
                "connection": name,
                "surface": each.surface,
                "base_url": each.base_url,
                "client_id": each.client_id,
                "secret": each.secret or str(each.secret_file),
                "streams": ", ".join(stream.name for stream in settings.streams_of(each)),
            }
            for name, each in settings.connections().items()
        ]
    if as_json:
        render.as_json(rows)
    else:
        render.table(rows)
