"""`make dev`: a sandbox, Dagster's UI and its daemon on this machine, on a home of their own."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import dagster as dg

from assets.partitions import register
from pipelines.cli import sandbox

CHECKOUT = Path(__file__).parent.parent
HOME = CHECKOUT / ".dev"


def main() -> int:
    """Run until interrupted; return Dagster's exit code."""
    instance = HOME / "dagster"
    instance.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CHECKOUT / "assets" / "dagster.yaml", instance / "dagster.yaml")
    with sandbox.running() as service:
        sandbox.point_at(service)
        os.environ.update({"PARTNER_SYNC_HOME": str(HOME), "DAGSTER_HOME": str(instance)})
        # Also creates the instance's databases, before two processes would at once.
        with dg.DagsterInstance.get() as opened:
            register(opened)
        print(f"sandbox on {service.url}; the UI opens on http://127.0.0.1:3000", flush=True)  # noqa: T201
        dg_program = str(Path(sys.executable).with_name("dg"))
        command = [dg_program, "dev", "-w", "dagster_workspace.yaml", "--host", "127.0.0.1"]
        return _until_interrupted(command)


def _until_interrupted(command: list[str]) -> int:
    """Run Dagster; Ctrl-C and SIGTERM end it in its own way, so that no child stays behind."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, cwd=CHECKOUT) as dagster:  # noqa: S603
        try:
            return dagster.wait()
        except KeyboardInterrupt:
            dagster.send_signal(signal.SIGINT)
            return dagster.wait()


if __name__ == "__main__":
    sys.exit(main())
