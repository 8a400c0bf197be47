"""The embedded service as a process: the verb `sandbox`, and what demo and the UI start.

The sync never imports the sandbox: the two are independent readings of the interface document.
"""

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import typer

from pipelines.errors import PartnerSyncError
from pipelines.settings import PREFIX

AUDIENCE = "partner-sync-sandbox"
CLIENT = "demo"
app = typer.Typer()


@dataclass(frozen=True)
class Service:
    """A running sandbox: its address, and the environment that points a sync at it."""

    url: str
    environment: dict[str, str]


@contextmanager
def running(*options: str, port: int = 0) -> Iterator[Service]:
    """Start a sandbox on this machine with a secret of its own; end it at the end of the block."""
    secret = secrets.token_urlsafe()
    command = [sys.executable, "-m", "sandbox", f"--port={port}", f"--audience={AUDIENCE}"]
    environment = os.environ | {"SANDBOX_CLIENT_SECRET": secret}
    with subprocess.Popen(  # noqa: S603 our own program
        [*command, *options], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            ready = process.stdout.readline() if process.stdout else ""
            url = re.search(r"https?://[^\s]+", ready)
            if url is None:
                raise PartnerSyncError("the sandbox did not start; its words are above")
            yield Service(url[0], _environment(url[0], secret))
        finally:
            process.terminate()


def point_at(service: Service) -> None:
    """Make this process's settings those of a sandbox, and none of the user's."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    os.environ.update(service.environment)


def _environment(url: str, secret: str) -> dict[str, str]:
    return {
        f"{PREFIX}BASE_URL": url,
        f"{PREFIX}AUTH_URL": url,
        f"{PREFIX}AUDIENCE": AUDIENCE,
        f"{PREFIX}CLIENT_ID": CLIENT,
        f"{PREFIX}CLIENT_SECRET": secret,
    }


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def sandbox(context: typer.Context) -> None:
    """Serve the embedded service on 127.0.0.1 until it is interrupted; --help lists its options."""
    command = [sys.executable, "-m", "sandbox", *context.args]
    os.execv(sys.executable, command)  # noqa: S606 our own program takes this process over
