"""A local copy of the service for `demo` and `make dev`, in a process of its own."""

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.config.values import read_toml
from pipelines.core.errors import PartnerSyncError
from pipelines.core.files import write_durably

STOPPED = "Its output is above. If the port is taken, choose another one."
READY = re.compile(r"sandbox ready: (\S+) \(client ([^,]+), audience ([^,]+),")


@contextmanager
def running_sandbox(home: Home, name: str, *options: str) -> Iterator[str]:
    """Run `python -m sandbox` for the block, with a connection to it; yield its address."""
    secret, file = secrets.token_urlsafe(), home.settings_file.with_name(f"{name}-secret")
    write_durably(file, secret.encode())
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "sandbox", *options],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"SANDBOX_CLIENT_SECRET": secret},
        start_new_session=True,  # Ctrl-C reaches this program, which ends the sandbox last
    ) as process:
        try:
            ready = READY.match(process.stdout.readline() if process.stdout else "")
            if ready is None:
                raise PartnerSyncError("The sandbox did not start.", STOPPED)
            fields = dict(zip(("base_url", "client_id", "audience"), ready.groups(), strict=True))
            if name not in read_toml(home.connections_file):
                fields |= {"auth_url": fields["base_url"], "secret_file": str(file)}
                add_connection(home.connections_file, name, fields)
            yield fields["base_url"]
        finally:
            process.terminate()
