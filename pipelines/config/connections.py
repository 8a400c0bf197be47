"""`config/connections.toml`: a table for each set of credentials. Secrets are named, not given."""

import json
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.config.values import NAME, Address, FullPath, Surface, Text, Variable
from pipelines.core.errors import ConfigurationError
from pipelines.core.files import write_durably

PARTNER_FIELDS = ("auth_url", "audience", "client_id")
NAMING_REMEDY = (
    "Write secret = the name of an environment variable, or secret_file = a file with mode 0600."
)


class Connection(BaseModel):
    """One set of credentials: where the service is and who asks.

    The secret is the client secret on the partner surface and the API key on the merchant surface.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, validate_default=False
    )

    name: Annotated[str, Field(exclude=True)]
    surface: Surface = Field(default="partner", description="partner or merchant")
    base_url: Address = Field(description="address of the service")
    auth_url: Address | None = Field(default=None, description="partner: the identity provider")
    audience: Text | None = Field(default=None, description="partner: the API identifier")
    client_id: Text | None = Field(default=None, description="partner: the client")
    secret: Variable | None = Field(
        default=None, description="environment variable that holds the client secret or API key"
    )
    secret_file: Annotated[FullPath, Field(strict=False)] | None = Field(
        default=None, description="file with mode 0600, read where the variable is not set"
    )
    rate_limit_key: Text | None = Field(
        default=None, description="equal for connections that share one rate limit"
    )
    max_requests_per_window: int | None = Field(
        default=None, ge=1, description="our share of the rate limit, at most"
    )
    ca_file: Annotated[FullPath, Field(strict=False)] | None = Field(
        default=None, description="certificates to trust instead of the built-in ones"
    )
    skip: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=(), description="streams that this connection does not read"
    )

    def read_secret(self) -> str:
        """Return the secret. Raises ConfigurationError where it is absent or open to others."""
        if self.secret and (value := os.environ.get(self.secret)):
            return value
        if self.secret_file is None:
            raise ConfigurationError(
                f"Connection `{self.name}`: the environment variable {self.secret} is not set, so "
                "there are no credentials. Nothing was requested.",
                f"Set {self.secret}, or add secret_file to the connection.",
            )
        return _read_secret_file(self.secret_file)


def _read_secret_file(file: Path) -> str:
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigurationError(f"Cannot read the secret file {file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"The secret file {file} is not UTF-8 text.") from None
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigurationError(
            f"Other users can read the secret file {file}. It was not used.", f"chmod 600 {file}"
        )
    if not text:
        raise ConfigurationError(f"The secret file {file} is empty.")
    return text


def read_connections(file: Path) -> dict[str, Connection]:
    """Return the connections of a file by name. Raises ConfigurationError with every fault."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        document = {}
    except OSError as error:
        raise ConfigurationError(f"Cannot read {file}: {error.strerror}.") from None
    except ValueError as error:  # no TOML, or no UTF-8
        raise ConfigurationError(f"{file} is not valid TOML: {error}.") from None
    if not document:
        raise ConfigurationError(
            f"{file} names no connection.", "Run `partner-sync init` to add one."
        )
    return {name: _parse(file, name, table) for name, table in document.items()}


def add_connection(file: Path, name: str, fields: Mapping[str, Any]) -> Connection:
    """Append a connection to the file; everything else in it stays as it is.

    Raises ConfigurationError, and writes nothing, where a field is wrong or the name exists.
    """
    added = _parse(file, name, dict(fields))
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if text and name in tomllib.loads(text):
        raise ConfigurationError(f"{file} already has a connection `{name}`. Edit the file.")
    # Strings, whole numbers and lists look the same in JSON and TOML.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    write_durably(file, "\n".join((f"{text}{gap}[{name}]", *lines, "")).encode())
    return added


def _parse(file: Path, name: str, table: object) -> Connection:
    faults = list(_name_faults(name))
    if not isinstance(table, dict):
        faults.append(("", f"must be a table: [{name}]"))
    else:
        try:
            connection = Connection.model_validate({"name": name, **table})
        except ValidationError as error:
            faults.extend(_validation_faults(error))
        else:
            faults.extend(_surface_faults(connection))
    if faults:
        lines = (f"{field}: {fault}" if field else fault for field, fault in faults)
        raise ConfigurationError(f"{file}: connection `{name}`: {'; '.join(lines)}.", NAMING_REMEDY)
    return connection


def _name_faults(name: str) -> Iterator[tuple[str, str]]:
    if not NAME.fullmatch(name):
        yield "name", "must be of small letters, digits, - and _, at most 63 characters"


def _validation_faults(error: ValidationError) -> Iterator[tuple[str, str]]:
    for each in error.errors(include_input=False, include_url=False, include_context=False):
        known = {"extra_forbidden": "no such field", "missing": "must be given"}
        fault = known.get(each["type"], each["msg"].removeprefix("Value error, "))
        yield str(each["loc"][0]), fault


def _surface_faults(connection: Connection) -> Iterator[tuple[str, str]]:
    for name in PARTNER_FIELDS:
        given = getattr(connection, name) is not None
        if connection.surface == "partner" and not given:
            yield name, "must be given"
        if connection.surface == "merchant" and given:
            yield name, "is for the partner surface; a merchant connection has an API key only"
    if connection.secret is None and connection.secret_file is None:
        yield "secret", "must be given"
