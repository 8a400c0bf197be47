"""`make dev`: a sandbox, Dagster's UI and its daemon on this machine, with a home of their own.

`DEV_HOME` (default `.dev` in the checkout), `DEV_PORT` (3000) and `DEV_SANDBOX_PORT` (8010) let a
second one run beside the first.
"""

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import dagster as dg

from assets.partitions import register_connections
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from pipelines.config.values import PREFIX
from pipelines.core.errors import ConfigurationError, PartnerSyncError

CHECKOUT = Path(__file__).parent.parent
CONNECTION = "sandbox"
SECRET = "SANDBOX_CLIENT_SECRET"  # noqa: S105 - the name of the variable
READY = re.compile(r"sandbox ready: (\S+) \(client ([^,]+), audience ([^,]+),")
FIRST_DAY = date(2026, 11, 1)  # the sandbox has no data before
LONGEST_STOP_SECONDS = 60
TEXT = """The sandbox runs on {service}. The UI opens on http://127.0.0.1:{port}.
To read today: Assets, raw, Materialize, connection `{connection}`, today's date.
Everything is kept in {home}. Press Ctrl-C to stop.
"""


def main() -> int:
    """Run until interrupted; return the exit code. Raises ConfigurationError."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    home = Home(Path(os.environ.get("DEV_HOME") or CHECKOUT / ".dev").absolute()).prepare()
    port = os.environ.get("DEV_PORT") or "3000"
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]  # settings of another home
    os.environ |= {
        SECRET: secrets.token_urlsafe(),
        f"{PREFIX}HOME": str(home.root),
        "DAGSTER_HOME": str(home.dagster),
    }
    with running_sandbox(os.environ.get("DEV_SANDBOX_PORT") or "8010") as service:
        connect(home, service)
        prepare_instance(home)
        text = TEXT.format(service=service[1], port=port, connection=CONNECTION, home=home.root)
        sys.stdout.write(text)
        sys.stdout.flush()
        return run_dagster(port)


@contextmanager
def running_sandbox(port: str) -> Iterator[re.Match[str]]:
    """Start the sandbox for the block; yield its ready line: address, client, audience."""
    now = max(datetime.now(UTC).date(), FIRST_DAY)
    command = [sys.executable, "-m", "sandbox", f"--port={port}", f"--now={now}"]
    with subprocess.Popen(  # noqa: S603 - our own program
        command,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C reaches this program only, which stops the others in order
    ) as process:
        try:
            ready = READY.match(process.stdout.readline() if process.stdout else "")
            if ready is None:
                raise ConfigurationError(
                    f"The sandbox did not start on port {port}. Its output is above.",
                    "Set DEV_SANDBOX_PORT to a free port.",
                )
            yield ready
        finally:
            process.terminate()


def connect(home: Home, service: re.Match[str]) -> None:
    """Add the connection to the sandbox, unless an earlier start did."""
    url, client, audience = service.groups()
    fields = {
        "base_url": url,
        "auth_url": url,
        "audience": audience,
        "client_id": client,
        "secret": SECRET,
    }
    if not home.connections_file.exists():
        add_connection(home.connections_file, CONNECTION, fields)
    known = load_settings(home).connection(CONNECTION)
    if known.base_url != url:
        raise ConfigurationError(
            f"{home.root} belongs to a sandbox on {known.base_url}, not on {url}.",
            "Set DEV_SANDBOX_PORT to that port, or DEV_HOME to another folder.",
        )


def prepare_instance(home: Home) -> None:
    """Create Dagster's databases before two processes create them at once; add the connection."""
    home.dagster.mkdir(exist_ok=True)
    shutil.copyfile(CHECKOUT / "assets" / "dagster.yaml", home.dagster / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(home.dagster)) as instance:
        register_connections(instance, load_settings(home))


def run_dagster(port: str) -> int:
    """Run the UI and the daemon until they end or a person interrupts; return the exit code."""
    program = str(Path(sys.executable).with_name("dagster"))
    command = [program, "dev", "-w", "dagster_workspace.yaml", "-h", "127.0.0.1", "-p", port]
    with subprocess.Popen(  # noqa: S603 - a program of our environment
        command, cwd=CHECKOUT, start_new_session=True
    ) as dagster:
        try:
            return dagster.wait()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            dagster.send_signal(signal.SIGINT)
            dagster.wait(LONGEST_STOP_SECONDS)
            return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PartnerSyncError as error:
        sys.exit(f"{error} {error.remedy}".strip())
    except KeyboardInterrupt:
        sys.exit(130)
