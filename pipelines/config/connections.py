"""`config/connections.toml`: a table for each set of credentials. Secrets are named, not given."""

import asyncio
import json
import os
import re
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, TypeAdapter, model_validator

from pipelines.config import values
from pipelines.config.secret_command import SecretCommandFailed, secret_command
from pipelines.core.errors import ConfigurationError
from pipelines.core.files import storing, write_durably
from pipelines.core.text import decode_text, has_undecoded

PARTNER_FIELDS = ("auth_url", "audience", "client_id")
# Bits of a file's mode.
OPEN_TO_OTHERS = 0o077
# White space, also without width, and byte order marks.
AROUND = r"\s\u200b\u2060\ufeff"


class Connection(values.Table):
    """One set of credentials: where the service is and who asks.

    The secret is the client secret on the partner surface and the API key on the merchant surface.
    """

    name: values.ConnectionName
    surface: values.Surface = "partner"
    """partner or merchant"""
    base_url: values.Address
    """address of the service"""
    auth_url: values.Address | None = None
    """partner surface: address of the identity provider"""
    audience: values.Text | None = None
    """partner surface: API identifier"""
    client_id: values.Text | None = None
    """partner surface: client ID"""
    secret: values.Variable | None = None
    """name of the environment variable with the client secret or API key"""
    secret_file: values.FullPath | None = None
    """file with mode 0600 that holds the secret, used if the variable is not set"""
    secret_command: values.CommandLine | None = Field(default=None, repr=False)
    """command that prints the secret, used if the variable is not set"""
    rate_limit_key: values.Text | None = None
    """same text for all connections that share one rate limit"""
    max_requests_per_window: int | None = Field(default=None, ge=1, strict=True)
    """maximum number of requests in one window of the rate limit"""
    ca_file: values.FullPath | None = None
    """file of certificates to trust instead of the built-in ones, PEM or DER"""
    ca_strict: bool = True
    """false: accept a ca_file that lacks what RFC 5280 requires of an authority"""
    skip: tuple[str, ...] = ()
    """streams that this connection does not read; `init` adds those that are refused (403)"""

    @model_validator(mode="after")
    def _check_surface(self) -> Self:
        given = [name for name in PARTNER_FIELDS if getattr(self, name) is not None]
        if self.surface == "merchant" and given:
            raise ValueError(
                f"{', '.join(given)}: for the partner surface; a merchant connection has an API "
                "key only"
            )
        if not self.ca_strict and not self.ca_file:
            raise ValueError("ca_strict: only with ca_file")
        if self.secret_file and self.secret_command:
            raise ValueError("secret_file, secret_command: only one of both")
        return self

    @model_validator(mode="after")
    def _check_missing(self) -> Self:
        missing = []
        if self.surface == "partner":
            missing = [name for name in PARTNER_FIELDS if getattr(self, name) is None]
        if not self.secret and not self.secret_file and not self.secret_command:
            missing.append(
                "secret (name of a variable), secret_file (a file with mode 0600) or "
                "secret_command (a command that prints it)"
            )
        if missing:
            raise ValueError(f"{', '.join(missing)}: must be given")
        return self

    def read_secret(self) -> str:
        """Return the secret, without spaces, line breaks and byte order marks around it.

        Raises ConfigurationError where it is absent, open to others, or not text. A command takes
        up to 30 seconds; what it printed is kept for five minutes.
        """
        secret = _trimmed(os.environ.get(self.secret, "")) if self.secret else ""
        if has_undecoded(secret):
            # As a locale without UTF-8 has it. It could not be encoded where it is sent.
            raise self._no_secret(
                f"the environment variable {self.secret} is not UTF-8 text",
                f"Set {self.secret} again.",
            )
        if secret:
            return secret
        if self.secret_file:
            return self._secret_of_file(self.secret_file)
        if self.secret_command:
            return self._secret_of_command(self.secret_command)
        raise self._no_secret(
            f"the environment variable {self.secret} is not set",
            f"Set {self.secret}, or add secret_file or secret_command to the connection.",
        )

    async def read_secret_beside_others(self) -> str:
        """Return the secret as `read_secret` does; other tasks go on while its command runs."""
        if self.secret_command:
            return await asyncio.to_thread(self.read_secret)
        return self.read_secret()

    @property
    def secret_place(self) -> str:
        """Where the secret is: a variable, a file, or `secret_command`."""
        return self.secret or str(self.secret_file or "secret_command")

    def doubt_about_secret(self) -> str:
        """Return a sentence about what looks wrong in the secret, without it; empty if nothing."""
        secret = self.read_secret()
        place = "What secret_command prints"
        if self.secret_file:
            place = f"The secret in secret_file {self.secret_file}"
        if self.secret and os.environ.get(self.secret, "").strip():
            place = f"The secret in the environment variable {self.secret}"
        if re.search(r"\s", secret):
            return f" {place} contains a space or a line break."
        if len(secret) > 1 and secret[0] == secret[-1] and secret[0] in "\"'":
            return f" {place} is in quotes, which count as part of it."
        return ""

    def _secret_of_file(self, file: Path) -> str:
        try:
            secret = _trimmed(decode_text(file.read_bytes()))
            is_open_to_others = file.stat().st_mode & OPEN_TO_OTHERS
            if secret and not is_open_to_others:
                return secret
            why = "other users can read it" if secret else "it is empty"
        except OSError as error:
            why = str(error.strerror)
        except UnicodeDecodeError:
            why = "it is not UTF-8 text"
        raise self._no_secret(
            f"secret_file {file} cannot be used: {why}",
            f"Write the secret into {file}, then run `chmod 600 {shlex.quote(str(file))}`.",
        )

    def _secret_of_command(self, text: str) -> str:
        try:
            return _trimmed(secret_command(text).read())
        except SecretCommandFailed as error:
            raise self._no_secret(
                f"secret_command cannot be used: {error}. What it printed is not shown, because "
                "that may hold a secret",
                "Run the command yourself, as the same user and with the same environment.",
            ) from None

    def _no_secret(self, why: str, remedy: str) -> ConfigurationError:
        return ConfigurationError(
            f"Connection `{self.name}` has no credentials: {why}. Nothing was requested.", remedy
        )


def _trimmed(secret: str) -> str:
    """Return a secret without what an editor, a shell or a copy put around it."""
    # `str.strip` leaves white space without width and byte order marks.
    return re.sub(rf"\A[{AROUND}]+|[{AROUND}]+\Z", "", secret)


CONNECTIONS = TypeAdapter(Annotated[dict[str, Connection], BeforeValidator(values.name_tables)])


def check_field(name: str, value: str) -> None:
    """Raise ConfigurationError, which says what is wrong, for what a field cannot have."""
    kind = TypeAdapter[Any](Connection.model_fields[name].rebuild_annotation())
    values.validate(kind, value, name, "")


def add_connection(file: Path, name: str, fields: Mapping[str, Any]) -> Connection:
    """Append a connection to the file; everything else in it stays as it is.

    Raises ConfigurationError, and writes nothing, where a field is wrong or the name exists;
    StorageFailed.
    """
    added = values.validate(CONNECTIONS, {name: dict(fields)}, "the connection", "")
    if name in values.read_toml(file):
        raise ConfigurationError(
            f"{file} already has a connection `{name}`. Nothing was changed.",
            f"Correct [{name}] there, then run `partner-sync check`, or choose another --name.",
        )
    text = decode_text(file.read_bytes()) if file.exists() else ""
    if text and not text.endswith("\n"):
        text += "\n"
    if text:
        text += "\n"  # an empty line before the table
    text += f"[{name}]\n"
    for key, value in fields.items():
        # Strings, whole numbers and lists look the same in JSON and TOML.
        text += f"{key} = {json.dumps(value, ensure_ascii=False)}\n"
    with storing(file, "`partner-sync init` again"):
        write_durably(file, text.encode())
    return added[name]


def skip_streams(file: Path, name: str, streams: Collection[str]) -> None:
    """Let a connection that skips nothing yet skip streams; the rest of the file stays as it is."""
    lines = decode_text(file.read_bytes()).split("\n")
    # The connection was just added, so its table is the last with this name. As text, so that the
    # comments of a person stay.
    header = len(lines) - 1 - lines[::-1].index(f"[{name}]")
    lines.insert(header + 1, f"skip = {json.dumps(list(streams))}")
    write_durably(file, "\n".join(lines).encode())
