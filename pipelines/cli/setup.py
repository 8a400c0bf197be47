"""The files of a new home: connections and settings, every field explained."""

import json
import sys
from collections.abc import Collection
from typing import Any

import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from pipelines.cli.terminal import line
from pipelines.config import connections
from pipelines.config.home import Home
from pipelines.config.settings import Settings
from pipelines.core.errors import ConfigurationError
from pipelines.core.files import write_durably

ASKED = ("base_url", *connections.PARTNER_FIELDS, "secret")
KEY_EXAMPLE = '\n# [streams.usage]\n# key = "usageId"\n'


def add_connection(name: str, options: dict[str, Any]) -> None:
    """Write commented files and a connection; ask for the fields that no option gives."""
    home, known = Home.from_environment(), connections.Connection.model_fields
    fields = {field: options[field] for field in known if field != "name" and options.get(field)}
    is_merchant, has_secret = fields["surface"] == "merchant", "secret_file" in fields
    missing = [
        field
        for field in ASKED
        if field not in fields
        and not (is_merchant and field in connections.PARTNER_FIELDS)
        and not (has_secret and field == "secret")
    ]
    fields |= _ask(missing)
    home.prepare()
    if not home.connections_file.exists():
        write_durably(home.connections_file, commented(connections.Connection).encode())
    if not home.settings_file.exists():
        write_durably(home.settings_file, commented_settings().encode())
    connections.add_connection(home.connections_file, name, fields)
    line(f"Added connection `{name}` to {home.connections_file}.")
    line(f"Every setting is explained in {home.settings_file}.")


def _ask(fields: list[str]) -> dict[str, str]:
    """Ask for fields of a connection. Raises ConfigurationError where nobody can answer."""
    if fields and not sys.stdin.isatty():
        options = ", ".join(f"--{field.replace('_', '-')}" for field in fields)
        raise ConfigurationError(f"Without a terminal, these options are needed: {options}.")
    known = connections.Connection.model_fields
    return {field: typer.prompt(str(known[field].description)) for field in fields}


def commented_settings() -> str:
    """Return a settings file in which every setting is explained and has its default."""
    return commented(Settings, {"home", "streams"}) + KEY_EXAMPLE


def commented(model: type[BaseModel], skipped: Collection[str] = ()) -> str:
    """Return a TOML file with each field of a model as a comment: description and default."""
    lines = ["# Remove the first # of a line to set it."]
    for name, field in model.model_fields.items():
        if field.description and name not in skipped:
            is_given = field.default not in (None, PydanticUndefined)
            value = json.dumps(field.default, default=str) if is_given else '"..."'
            lines += ["", f"# {field.description}", f"# {name} = {value}"]
    return "\n".join([*lines, ""])
