"""`make dev`: a sandbox, Dagster's UI and its daemon on this machine, on a home of their own.

`NIGHTS=3 make dev` first records the three nights before today (nights), so that there is something
to replay and to compare. Not here: a service for real (deploy/single-machine).
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import dagster as dg

from assets import nights
from assets.partitions import register
from pipelines.cli import sandbox
from pipelines.errors import ConfigurationError, PartnerSyncError
from pipelines.settings import Home, mapping

CHECKOUT = Path(__file__).parent.parent
# Whose tests run beside a `make dev` name other ones.
HOME = Path(os.environ.get("DEV_HOME", CHECKOUT / ".dev")).absolute()
PORT = os.environ.get("DEV_PORT", "3000")
WORDS = """sandbox on {service}; the UI opens on http://127.0.0.1:{port}, Ctrl-C ends both
to read today: Lineage, Materialize all, connection All, date Latest, Launch (docs/operation.md)
everything is kept in {home}; the next start goes on with it"""


def main() -> int:
    """Run until interrupted; return Dagster's exit code."""
    take(PORT)
    instance = HOME / "dagster"
    instance.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CHECKOUT / "assets" / "dagster.yaml", instance / "dagster.yaml")
    today = datetime.now(UTC).date()
    home = Home(HOME)
    _map(home)
    nights.record(home, nights.missing(home, nights.asked(), today))
    with sandbox.running(f"--now={nights.as_of(today)}") as service:
        sandbox.point_at(service)
        os.environ.update({"PARTNER_SYNC_HOME": str(HOME), "DAGSTER_HOME": str(instance)})
        # Also creates the instance's databases, before two processes would at once.
        with dg.DagsterInstance.get() as opened:
            register(opened)
        print(WORDS.format(service=service.url, port=PORT, home=HOME), flush=True)  # noqa: T201
        dg_program = str(Path(sys.executable).with_name("dg"))
        command = [dg_program, "dev", "-w", "dagster_workspace.yaml", "--host", "127.0.0.1"]
        return _until_interrupted([*command, "--port", PORT])


def take(port: str) -> None:
    """Refuse a port that somebody listens on, before a night is recorded for nothing."""
    if not port.isdecimal():
        raise ConfigurationError(f"DEV_PORT={port}: must be a number, such as 3001")
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", int(port)))
        except (OSError, OverflowError) as error:
            raise ConfigurationError(
                f"the UI cannot open on port {port} ({error}); is another make dev running? "
                "DEV_PORT=3001 DEV_HOME=/tmp/dev-2 make dev opens a second one beside it"
            ) from None


def _map(home: Home) -> None:
    """Say what the sandbox's fields mean, unless a person said so; reports need it."""
    home.prepare()
    file = home.config / mapping.FILE
    if not file.exists():
        file.write_text((files("pipelines.settings") / "sandbox.toml").read_text())


def _until_interrupted(command: list[str]) -> int:
    """Run Dagster; Ctrl-C and SIGTERM end it in its own way, so that no child stays behind.

    That is no failure. Who presses Ctrl-C again waits as long.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, cwd=CHECKOUT) as dagster:  # noqa: S603
        try:
            return dagster.wait()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            dagster.send_signal(signal.SIGINT)
            dagster.wait()
            return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PartnerSyncError as error:
        sys.exit(f"error {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted while it was set up; the next start goes on from there")
