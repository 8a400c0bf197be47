"""Many accounts at one sandbox: each with credentials, lists and a limit of its own.

Here: the clients file, the connections that lead to them, and what the service has counted of each.
The first account has two connections, which share its actor. Not here: who reads them (night).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from pipelines.cli import sandbox
from tests.sandbox.running import AUDIENCE

SMALL = ("--partners=40", "--usage=4000", "--billing=400")
TWIN = "c01-twin"


@dataclass(frozen=True)
class Accounts:
    """A running service and so many accounts at it."""

    url: str
    count: int

    @property
    def names(self) -> list[str]:
        """The accounts: each is a client, and a connection of the same name."""
        return [f"c{number:02}" for number in range(1, self.count + 1)]

    @property
    def connections(self) -> dict[str, str]:
        """Every connection and its account."""
        return {self.names[0]: self.names[0], TWIN: self.names[0]} | {
            name: name for name in self.names[1:]
        }

    @property
    def secrets(self) -> dict[str, str]:
        """The environment that connections.toml names."""
        return {f"SECRET_OF_{name.upper()}": secret(name) for name in self.names}

    def write(self, home: Path) -> None:
        """Write connections.toml of a home."""
        (home / "config").mkdir(parents=True)
        tables = (self._table(*each) for each in self.connections.items())
        (home / "config" / "connections.toml").write_text("\n".join(tables))

    def _table(self, connection: str, account: str) -> str:
        fields = {
            "base_url": self.url,
            "auth_url": self.url,
            "audience": AUDIENCE,
            "client_id": account,
            "secret": f"SECRET_OF_{account.upper()}",
        }
        lines = [f'{name} = "{value}"' for name, value in fields.items()]
        return "\n".join((f"[{connection}]", *lines, ""))

    def counted(self) -> dict[str, Any]:
        """Return what the service has counted of each actor."""
        answer = httpx.get(f"{self.url}/__sandbox__/statistics", trust_env=False)
        counted: dict[str, Any] = answer.json()["callers"]
        return counted

    def forget(self) -> None:
        """Let the service count from zero."""
        httpx.delete(f"{self.url}/__sandbox__/statistics", trust_env=False).raise_for_status()


def secret(name: str) -> str:
    """Return the secret of an account."""
    return f"not secret: of {name}"


@contextmanager
def serving(folder: Path, count: int, *options: str) -> Iterator[Accounts]:
    """Serve so many accounts until the end of the block."""
    clients = [
        f'[[clients]]\nid = "{name}"\nsecret = "{secret(name)}"\nactor = "distributor"\n'
        f"seed = {number}\n"
        for number, name in enumerate(Accounts("", count).names, 100)
    ]
    file = folder / "clients.toml"
    file.touch(0o600)
    file.write_text("\n".join(clients))
    with sandbox.running(f"--clients={file}", *options) as service:
        yield Accounts(service.url, count)
