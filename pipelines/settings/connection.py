"""A set of credentials: where the service is, who asks, and where the secret can be read.

Here: the value that every floor above is given, and the one place where a secret is read. Not here:
where the value comes from (model, connections).
"""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from pipelines.errors import ConfigurationError
from pipelines.settings.values import LOOPBACK, Surface


@dataclass(frozen=True)
class Secret:
    """The whereabouts of a secret: an environment variable, else a file only its owner can read."""

    variable: str | None
    file: Path | None = None

    def read(self) -> str:
        """Return the secret; raise ConfigurationError where it is absent or open to others."""
        if self.variable and (value := os.environ.get(self.variable)):
            return value
        if self.file is None:
            raise ConfigurationError(f"{self.variable} is not set: no secret to sign in with")
        try:
            mode = self.file.stat().st_mode
            text = self.file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigurationError(f"secret file {self.file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigurationError(f"secret file {self.file} is not text in UTF-8") from None
        if stat.S_IMODE(mode) & 0o077:
            raise ConfigurationError(
                f"secret file {self.file} can be read by others: chmod 600 {self.file}"
            )
        if not text:
            raise ConfigurationError(f"secret file {self.file} is empty")
        return text

    @property
    def there(self) -> bool:
        """Whether it can be read now."""
        try:
            return bool(self.read())
        except ConfigurationError:
            return False


@dataclass(frozen=True)
class Connection:
    """One set of credentials: where the service is and who asks.

    `secret` is the client's on the partner surface and the API key on the merchant surface, which
    has no `auth_url`, `audience` and `client_id`. `whoami` are the paths into its answer that make
    up the identity, chosen by rule where it is empty.
    """

    name: str
    base_url: str
    auth_url: str
    audience: str
    client_id: str
    secret: Secret = field(repr=False)
    surface: Surface = "partner"
    budget_key: str | None = None
    allowance: int | None = None
    ca_file: Path | None = None
    whoami: tuple[str, ...] = ()

    @property
    def on_this_machine(self) -> bool:
        """Whether the service and its identity provider are programs on this machine."""
        addresses = [each for each in (self.base_url, self.auth_url) if each]
        return all(httpx.URL(each).host in LOOPBACK for each in addresses)
