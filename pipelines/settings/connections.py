"""`config/connections.toml`: one table a connection, secrets by the names of their variables.

Here: reading it, and appending a table to it. Every wrong value is named by file, connection and
field, and never shown: it may be a secret that somebody put in the wrong place.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pipelines.errors import ConfigurationError
from pipelines.settings.connection import Connection, Secret
from pipelines.settings.values import PREFIX, Address, Place, Surface

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
OWN_VARIABLE = f"{PREFIX}CLIENT_SECRET"
# With an underscore, so that a secret of capitals and digits is not taken for a name.
VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
NO_SECRETS = (
    "no such field. Secrets are never written here: secret = the name of an environment variable, "
    "or secret_file = a file with mode 0600"
)


def _variable(name: str) -> str:
    if not VARIABLE.fullmatch(name):
        raise ValueError(
            "must be the name of the environment variable that holds the secret, such as "
            "ACME_SECRET (capitals, digits, at least one underscore), never the secret itself"
        )
    if name.startswith(PREFIX) and name != OWN_VARIABLE:
        raise ValueError(f"must not begin with {PREFIX}: these are settings")
    return name


def _printable(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError("must be a text that can be printed")
    return text


def _whole(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("must be a full path: this file is read from any folder")
    return path


Text = Annotated[str, AfterValidator(_printable)]
Variable = Annotated[str, AfterValidator(_variable)]
FullPath = Annotated[Place, AfterValidator(_whole)]
Step = Annotated[str, Field(pattern=r"^[^.]+(\.[^.]+)*$")]


class Table(BaseModel):
    """What a table of connections.toml may say."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, validate_default=False
    )

    surface: Surface = Field(default="partner", description="partner or merchant")
    base_url: Address = Field(description="address of the service")
    auth_url: Address | None = Field(default=None, description="partner: the identity provider")
    audience: Text | None = Field(default=None, description="partner: the API identifier")
    client_id: Text | None = Field(default=None, description="partner: who asks")
    secret: Variable | None = Field(
        default=None, description="variable that holds the client's secret, or the API key"
    )
    secret_file: Annotated[FullPath, Field(strict=False)] | None = Field(
        default=None, description="0600 file with it, where the variable is not set"
    )
    budget_key: Text | None = Field(default=None, description="connections that share an actor")
    allowance: int | None = Field(default=None, ge=1, description="requests a window at most")
    ca_file: Annotated[FullPath, Field(strict=False)] | None = Field(
        default=None, description="certificates to trust instead of the built-in ones"
    )
    whoami: Annotated[tuple[Step, ...], Field(strict=False, min_length=1)] | None = Field(
        default=None, description="partner: paths into whoami's answer that are the identity"
    )


PARTNERS = ("auth_url", "audience", "client_id")


def read(file: Path) -> Mapping[str, Connection] | None:
    """Return the connections of the file, None where there is no file.

    Raises ConfigurationError that names all that is wrong.
    """
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from None
    except ValueError as error:  # no TOML, or no UTF-8
        raise ConfigurationError(f"{file}: {error}") from None
    tables = {name: _table(file, name, entry) for name, entry in document.items()}
    if not tables:
        raise ConfigurationError(f"{file} names no connection: partner-sync connections add")
    return {name: _connection(name, table) for name, table in tables.items()}


def check_name(name: str) -> None:
    """Refuse what cannot be a folder's name and part of a partition's key."""
    if not NAME.fullmatch(name):
        raise ConfigurationError(
            "a connection's name is of small letters, digits, - and _, and begins with a letter or "
            "digit (63 characters at most): it becomes a folder and part of a partition's key"
        )


def _table(file: Path, name: str, entry: object) -> Table:
    try:
        check_name(name)
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: {error}") from None
    if not isinstance(entry, dict):
        raise ConfigurationError(f"{file}: {name} must be a table: [{name}]")
    try:
        table = Table.model_validate(entry)
    except ValidationError as error:
        wrong = list(_wrong(error))
    else:
        wrong = list(_unfit(table))
    if wrong:
        lines = [f"{file}: connection {name}, {field}: {words}" for field, words in wrong]
        raise ConfigurationError("; ".join(lines))
    return table


def _wrong(error: ValidationError) -> Iterator[tuple[str, str]]:
    for each in error.errors(include_input=False, include_url=False, include_context=False):
        words = each["msg"].removeprefix("Value error, ")
        words = NO_SECRETS if each["type"] == "extra_forbidden" else words
        words = "must be given" if each["type"] == "missing" else words
        yield str(each["loc"][0]), words


def _unfit(table: Table) -> Iterator[tuple[str, str]]:
    """Say what the surface needs or has no use for."""
    for name in PARTNERS:
        if table.surface == "partner" and getattr(table, name) is None:
            yield name, "must be given"
    for name in (*PARTNERS, "whoami"):
        if table.surface == "merchant" and getattr(table, name) is not None:
            yield name, "is of the partner surface; a merchant connection has an API key only"
    if table.secret is None and table.secret_file is None:
        yield "secret", "must be given: the name of an environment variable (or secret_file)"


def _connection(name: str, table: Table) -> Connection:
    return Connection(
        name=name,
        base_url=table.base_url,
        auth_url=table.auth_url or "",
        audience=table.audience or "",
        client_id=table.client_id or "",
        secret=Secret(table.secret, table.secret_file),
        surface=table.surface,
        budget_key=table.budget_key,
        allowance=table.allowance,
        ca_file=table.ca_file,
        whoami=table.whoami or (),
    )


def append(file: Path, name: str, fields: Mapping[str, Any]) -> None:
    """Append a table; what is there, comments too, stays as it is.

    Raises ConfigurationError, and writes nothing, for a name that is taken and for wrong fields.
    """
    check_name(name)
    _table(file, name, fields)
    there = read(file) or {}
    if name in there:
        raise ConfigurationError(f"{file}: there is a connection {name} already; edit the file")
    # Texts, whole numbers and lists are written alike in JSON and TOML.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    table = "\n".join((f"[{name}]", *lines, ""))
    between = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + between + table, encoding="utf-8")
