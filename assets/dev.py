"""`make dev`: a sandbox, Dagster's UI and its daemon on this machine, with a home of their own.

`DEV_HOME` (default `.dev` in the checkout), `DEV_PORT` (3000) and `DEV_SANDBOX_PORT` (8010) let a
second one run beside the first.
"""

import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import dagster as dg

from assets.names import Names, register_connections
from pipelines.app.demo import running_sandbox
from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from pipelines.config.values import PREFIX
from pipelines.core.errors import ConfigurationError, PartnerSyncError

CHECKOUT = Path(__file__).parent.parent
CONNECTION = "sandbox"
# The sandbox has no data before.
FIRST_DAY = date(2026, 11, 1)
LONGEST_STOP_SECONDS = 60
TEXT = """The sandbox runs on {service}. The UI opens on http://127.0.0.1:{port}.
To read today: Assets, raw, Materialize, connection `{connection}`, today's date.
Everything is kept in {home}. Press Ctrl-C to stop.
"""


def main() -> int:
    """Run until interrupted; return the exit code. Raises ConfigurationError."""
    # Shells ignore SIGINT for `make dev &`, and a child inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    home = Home(Path(os.environ.get("DEV_HOME") or CHECKOUT / ".dev").absolute()).prepare()
    port = os.environ.get("DEV_PORT") or "3000"
    for name in list(os.environ):
        if name.startswith(PREFIX):
            del os.environ[name]  # a setting of another home
    os.environ[f"{PREFIX}HOME"] = str(home.root)
    os.environ["DAGSTER_HOME"] = str(home.dagster)
    sandbox_port = os.environ.get("DEV_SANDBOX_PORT") or "8010"
    now = max(datetime.now(UTC).date(), FIRST_DAY)
    with running_sandbox(home, CONNECTION, f"--port={sandbox_port}", f"--now={now}") as service:
        require_same_service(home, service)
        prepare_instance(home)
        text = TEXT.format(service=service, port=port, connection=CONNECTION, home=home.root)
        sys.stdout.write(text)
        sys.stdout.flush()
        return run_dagster(port)


def require_same_service(home: Home, service: str) -> None:
    """Raise ConfigurationError if the home has data of a sandbox with another address."""
    known = load_settings(home).connection(CONNECTION).base_url
    if known != service:
        raise ConfigurationError(
            f"{home.root} belongs to a sandbox on {known}, not on {service}.",
            "Set DEV_SANDBOX_PORT to that port, or DEV_HOME to another folder.",
        )


def prepare_instance(home: Home) -> None:
    """Create Dagster's databases before two processes create them at once; add the connection."""
    home.dagster.mkdir(exist_ok=True)
    shutil.copyfile(CHECKOUT / "assets" / "dagster.yaml", home.dagster / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(home.dagster)) as instance:
        register_connections(instance, Names(), load_settings(home))


def dagster_command(port: str) -> list[str]:
    """Return the command of the UI and the daemon; it runs in the checkout."""
    program = str(Path(sys.executable).with_name("dagster"))
    return [program, "dev", "-w", "dagster_workspace.yaml", "-h", "127.0.0.1", "-p", port]


def run_dagster(port: str) -> int:
    """Run the UI and the daemon until they end or a person interrupts; return the exit code."""
    with subprocess.Popen(  # noqa: S603 - a program of our environment
        dagster_command(port), cwd=CHECKOUT, start_new_session=True
    ) as dagster:
        try:
            return dagster.wait()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            dagster.send_signal(signal.SIGINT)
            try:
                dagster.wait(LONGEST_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                # Its whole group: the UI and the daemon are processes of the session it leads.
                os.killpg(dagster.pid, signal.SIGKILL)
            return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PartnerSyncError as error:
        sys.exit(f"{error} {error.remedy}".strip())
    except KeyboardInterrupt:
        sys.exit(130)
