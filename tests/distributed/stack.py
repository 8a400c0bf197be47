"""Dagster's processes as deploy/distributed has them: daemon, web server, conductor, workers.

Here: beginning, killing and ending them on one machine, and what its instance knows of runs. Not
here: the servers that they share (servers), what is expected (rehearsal, killing).
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg

from tests.distributed.servers import free_port

CHECKOUT = Path(__file__).parents[2]
WORKSPACE = ("-w", "dagster_workspace.yaml")
CONDUCTED = 20  # runs at a time; each waits for its steps


@dataclass
class Stack:
    """One DAGSTER_HOME and the processes on it."""

    folder: Path
    environment: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    started: int = 0

    def __post_init__(self) -> None:
        """Make the instance ready, as a deployment does before anything else begins."""
        self.home.mkdir(parents=True)
        shutil.copyfile(CHECKOUT / "deploy/distributed/dagster.yaml", self.home / "dagster.yaml")
        self.run(sys.executable, "-m", "assets.register")

    @property
    def home(self) -> Path:
        """DAGSTER_HOME."""
        return self.folder / "dagster"

    @property
    def variables(self) -> dict[str, str]:
        """The environment of every process."""
        own = {name: value for name, value in os.environ.items() if "PARTNER_SYNC" not in name}
        return own | self.environment | {"DAGSTER_HOME": str(self.home)}

    def run(self, *command: str) -> str:
        """Run a program to its end; return what it says."""
        done = subprocess.run(
            command, env=self.variables, cwd=CHECKOUT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def begin(self, name: str, program: str, *arguments: str) -> None:
        """Start a program under a name of ours, as leader of its own group."""
        command = [str(Path(sys.executable).with_name(program)), *arguments]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                env=self.variables,
                cwd=CHECKOUT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def daemon(self) -> None:
        """Start the daemon; its code server is its child."""
        self.begin("daemon", "dagster-daemon", "run", *WORKSPACE)

    def webserver(self) -> str:
        """Start the web server; return its address."""
        port = str(free_port())
        self.begin("webserver", "dagster-webserver", *WORKSPACE, "-h", "127.0.0.1", "-p", port)
        return f"http://127.0.0.1:{port}"

    def conductor(self) -> None:
        """Start what conducts runs."""
        self._celery("conductor", "runs", CONDUCTED)

    def worker(self, name: str, at_once: int = 1) -> None:
        """Start a worker of both queues."""
        self._celery(name, "fetch,fold", at_once)

    def _celery(self, name: str, queues: str, at_once: int) -> None:
        self.started += 1  # a worker that begins again has another name: the old one is gone
        self.begin(
            name,
            "celery",
            *(
                "-A",
                "assets.worker",
                "worker",
                "-I",
                "assets.definitions",
                "-Q",
                queues,
                "-c",
                str(at_once),
            ),
            *("-n", f"{name}-{self.started}@%h", "--loglevel", "INFO"),
        )

    @contextmanager
    def instance(self) -> Iterator[dg.DagsterInstance]:
        """Open the instance as one more client."""
        before = os.environ.get("DAGSTER_POSTGRES_URL")
        os.environ["DAGSTER_POSTGRES_URL"] = self.environment["DAGSTER_POSTGRES_URL"]
        try:
            with dg.DagsterInstance.from_config(str(self.home)) as opened:
                yield opened
        finally:
            os.environ.pop("DAGSTER_POSTGRES_URL")
            os.environ |= {"DAGSTER_POSTGRES_URL": before} if before else {}

    def kill(self, name: str) -> None:
        """Kill a process and all of its children with -9, as a machine that is switched off."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def end(self) -> None:
        """End everything: in its own way, then by force."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 20
        for process in self.processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, end - time.monotonic()))
        for name in list(self.processes):
            self.kill(name)
