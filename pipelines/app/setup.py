"""The files of a new home: connections and settings, every field explained."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from pipelines.config import connections
from pipelines.config.home import Home
from pipelines.config.settings import Settings
from pipelines.core.files import write_durably

ASKED = ("base_url", *connections.PARTNER_FIELDS, "secret")
KEY_EXAMPLE = '\n# [streams.usage]\n# key = "usageId"\n'
Check = Callable[[str, str], None]
"""Gets a field and an answer. Raises ConfigurationError for one that the field cannot have."""
Ask = Callable[[dict[str, str], Check], dict[str, str]]
"""Gets a question for each field that is missing; returns the answers."""


def add_connection(name: str, options: Mapping[str, Any], ask: Ask) -> list[str]:
    """Write commented files and a connection; return what was written, in sentences."""
    home, known = Home.from_environment(), connections.Connection.model_fields
    fields = {field: options[field] for field in known if field != "name" and options.get(field)}
    needless = connections.PARTNER_FIELDS if fields["surface"] == "merchant" else ()
    missing = [field for field in ASKED if field not in fields and field not in needless]
    if "secret_file" in fields and "secret" in missing:
        missing.remove("secret")
    questions = {field: str(known[field].description) for field in missing}
    fields |= ask(questions, connections.check_field)
    home.prepare()
    if not home.connections_file.exists():
        write_durably(home.connections_file, commented(connections.Connection).encode())
    if not home.settings_file.exists():
        write_durably(home.settings_file, commented_settings().encode())
    connections.add_connection(home.connections_file, name, fields)
    return [
        f"Added connection `{name}` to {home.connections_file}.",
        f"Every setting is explained in {home.settings_file}.",
    ]


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
