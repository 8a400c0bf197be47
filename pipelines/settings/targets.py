"""Whom alerts are sent to: the tables `[webhook]` and `[mail]` of settings.toml.

Here: what may be set; secrets by the names of their variables or of 0600 files. Not here: how a
message is sent (run.targets).
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipelines.settings.connection import Secret
from pipelines.settings.connections import Variable
from pipelines.settings.values import LOOPBACK, Place

PORTS = {"starttls": 587, "tls": 465, "none": 25}
Host = Annotated[str, Field(pattern=r"^[\w.:-]+$")]
Recipient = Annotated[str, Field(pattern=r"^[^\s@<>,;:\"]+@[^\s@<>,;:\"]+$")]
STRICT = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Webhook(BaseModel):
    """An address that takes JSON; who knows it can post there, so it is named and not written."""

    model_config = STRICT

    url: Variable | None = Field(default=None, description="variable that holds the URL")
    url_file: Place | None = Field(
        default=None, description="0600 file with it, where the variable is not set"
    )
    ca_file: Place | None = Field(
        default=None, description="certificates to trust instead of the built-in ones"
    )

    @model_validator(mode="after")
    def _named(self) -> "Webhook":
        if self.url is None and self.url_file is None:
            raise ValueError("needs url, the name of an environment variable (or url_file)")
        return self

    @property
    def secret(self) -> Secret:
        """Where the URL is."""
        return Secret(self.url, self.url_file)


class Mail(BaseModel):
    """A mail server, how to sign in, from whom and to whom."""

    model_config = STRICT

    host: Host = Field(description="name of the mail server")
    port: int | None = Field(default=None, ge=1, le=65535, description="587, 465 or 25 otherwise")
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls", description="none is for a server on this machine only"
    )
    user: str | None = Field(default=None, description="who signs in; nobody where not set")
    password: Variable | None = Field(default=None, description="variable that holds the password")
    password_file: Place | None = Field(
        default=None, description="0600 file with it, where the variable is not set"
    )
    sender: Recipient = Field(description="whom the mail is from")
    to: tuple[Recipient, ...] = Field(min_length=1, description="whom it is to")
    ca_file: Place | None = Field(
        default=None, description="certificates to trust instead of the built-in ones"
    )

    @model_validator(mode="after")
    def _fits(self) -> "Mail":
        if self.security == "none" and self.host not in LOOPBACK:
            raise ValueError("security must be starttls or tls: none is for this machine only")
        if (self.user is None) != (self.password is None and self.password_file is None):
            raise ValueError(
                "user needs password, the name of an environment variable (or password_file), "
                "and the other way round"
            )
        return self

    @property
    def secret(self) -> Secret:
        """Where the password is."""
        return Secret(self.password, self.password_file)

    @property
    def door(self) -> int:
        """The port that is set, else the usual one."""
        return self.port or PORTS[self.security]
