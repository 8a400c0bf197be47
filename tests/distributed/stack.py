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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg

from tests.distributed.servers import free_port, listens

CHECKOUT = Path(__file__).parents[2]
WORKSPACE = """
load_from:
  - grpc_server: {{host: 127.0.0.1, port: {port}, location_name: partner-sync}}
"""
PATIENCE = 300.0  # seconds; loading definitions takes a processor some seven
CONDUCTED = 32  # runs at a time; each waits for its steps


def _configure(home: Path) -> None:
    """Make a DAGSTER_HOME."""
    home.mkdir(parents=True)
    shutil.copyfile(CHECKOUT / "deploy/distributed/dagster.yaml", home / "dagster.yaml")


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Let this process have some variables until the end of the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ |= {name: value} if value is not None else {}


def _nothing(_name: str) -> dict[str, str]:
    """Let a machine have nothing of its own."""
    return {}


@dataclass
class Stack:
    """One deployment's processes: Celery's on a machine each, all others on one."""

    folder: Path
    environment: dict[str, str]
    machine: Callable[[str], Mapping[str, str]] = _nothing  # what of it is each machine's own
    own: dict[str, dict[str, str]] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    commands: dict[str, tuple[str, ...]] = field(default_factory=dict)
    port: int = 0

    def __post_init__(self) -> None:
        """Make the instance ready, as a deployment does before anything else begins."""
        _configure(self.home)
        self.run(sys.executable, "-m", "assets.register")

    @property
    def home(self) -> Path:
        """DAGSTER_HOME of the processes that there is one of."""
        return self.folder / "dagster"

    @property
    def variables(self) -> dict[str, str]:
        """The environment of every process."""
        own = {name: value for name, value in os.environ.items() if "PARTNER_SYNC" not in name}
        own.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would compile ours anew
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
        self.commands[name] = (program, *arguments)
        command = [str(Path(sys.executable).with_name(program)), *arguments]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                env=self.variables | self.own.get(name, {}),
                cwd=CHECKOUT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def workspace(self) -> tuple[str, str]:
        """What daemon and web server are told: the one code server."""
        return "-w", str(self.home / "workspace.yaml")

    def code(self) -> None:
        """Start the code server; without it daemon and web server load definitions each minute."""
        port = str(free_port())
        (self.home / "workspace.yaml").write_text(WORKSPACE.format(port=port))
        told = ("--module-name", "assets.definitions", "--location-name", "partner-sync")
        self.begin("code", "dagster", "code-server", "start", "-h", "127.0.0.1", "-p", port, *told)
        self.port = int(port)

    def _until_code_answers(self) -> None:
        """Wait for the code server: whom it did not answer once asks again a minute later."""
        end = time.monotonic() + PATIENCE
        while not listens(self.port):
            assert time.monotonic() < end, f"no code server: {self.said('code')}"
            time.sleep(0.5)

    def daemon(self) -> None:
        """Start the daemon: schedule, sensors, the queue of runs."""
        self._until_code_answers()
        self.begin("daemon", "dagster-daemon", "run", *self.workspace)

    def until_ready(self) -> None:
        """Wait until conductor and workers say that they are: each has loaded the definitions."""
        end = time.monotonic() + PATIENCE
        for name, command in self.commands.items():
            while command[0] == "celery" and " ready." not in self.said(name):
                assert time.monotonic() < end, f"{name} is not ready: {self.said(name)}"
                time.sleep(0.5)

    def webserver(self) -> str:
        """Start the web server; return its address."""
        self._until_code_answers()
        port = str(free_port())
        self.begin("webserver", "dagster-webserver", *self.workspace, "-h", "127.0.0.1", "-p", port)
        return f"http://127.0.0.1:{port}"

    def conductor(self) -> None:
        """Start what conducts runs."""
        self._celery("conductor", "runs", CONDUCTED)

    def worker(self, name: str, at_once: int = 1) -> None:
        """Start a worker of both queues."""
        self._celery(name, "fetch,fold", at_once)

    def _celery(self, name: str, queues: str, at_once: int) -> None:
        home = self.folder / "machines" / name / "dagster"
        _configure(home)
        self.own[name] = {**self.machine(name), "DAGSTER_HOME": str(home)}
        self.begin(
            name,
            "celery",
            *(
                "-A",
                "assets.worker",
                "worker",
                "-Q",
                queues,
                "-c",
                str(at_once),
            ),
            *("-n", f"{name}@%h", "--loglevel", "INFO", "--without-gossip", "--without-mingle"),
        )

    @property
    def workers(self) -> list[int]:
        """Every worker: the process that leads its group."""
        begun = self.processes.items()
        return [process.pid for name, process in begun if name.startswith("worker")]

    @contextmanager
    def instance(self) -> Iterator[dg.DagsterInstance]:
        """Open the instance as one more client."""
        with environment(self.environment), dg.DagsterInstance.from_config(str(self.home)) as made:
            yield made

    def ended(self) -> list[str]:
        """Return the processes that have ended by themselves."""
        return [name for name, process in self.processes.items() if process.poll() is not None]

    def again(self) -> list[str]:
        """Start what has ended, as a service manager does; return which."""
        ended = self.ended()
        for name in ended:
            self.begin(name, *self.commands[name])
        return ended

    def said(self, name: str) -> str:
        """Return the last that a process said."""
        return (self.folder / f"{name}.log").read_text()[-2000:]

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
