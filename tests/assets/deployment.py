"""Dagster as it is deployed: webserver, daemon and code servers as processes on 127.0.0.1.

Here: beginning, killing and ending them, and asking over GraphQL. Not here: what is expected.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg
import httpx

from tests.assets.test_chain import KEYS

CHECKOUT = Path(__file__).parents[2]
PROCESSES = Path("/proc")
LAUNCH = """
mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }
"""
CANCEL = """
mutation ($id: String!) { cancelPartitionBackfill(backfillId: $id) { __typename } }
"""
BACKFILL = """
query ($id: String!) { partitionBackfillOrError(backfillId: $id) {
  __typename
  ... on PythonError { message }
  ... on PartitionBackfill {
    status
    runs(limit: 20) { runId status tags { key value } runConfigYaml }
    assetBackfillData { assetBackfillStatuses { ... on AssetPartitionsStatusCounts {
      assetKey { path } numPartitionsTargeted numPartitionsMaterialized numPartitionsFailed
    } } }
  } } }
"""
T = TypeVar("T")


def until(found: Callable[[], T | None], what: str, seconds: float = 240) -> T:
    """Wait for something; fail in words when the seconds are over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if there := found():
            return there
        time.sleep(0.25)
    raise AssertionError(f"{what}: not within {seconds} s")


@dataclass
class Deployment:
    """One DAGSTER_HOME and the processes on it; `answers` is all that GraphQL ever said."""

    folder: Path
    environment: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        """Make the instance ready as a service unit does."""
        self.home.mkdir(parents=True)
        shutil.copyfile(CHECKOUT / "assets" / "dagster.yaml", self.home / "dagster.yaml")
        command = [sys.executable, "-m", "assets.register"]
        subprocess.run(command, env=self._clean(), cwd=CHECKOUT, check=True, capture_output=True)

    @property
    def home(self) -> Path:
        """DAGSTER_HOME."""
        return self.folder / "dagster"

    def _clean(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if "PARTNER_SYNC" not in name}
        return own | self.environment | {"DAGSTER_HOME": str(self.home)}

    def daemon(self) -> None:
        """Start the daemon; its code server is its child."""
        self._start("dagster-daemon", "run", "-w", "dagster_workspace.yaml")

    def webserver(self) -> None:
        """Start the webserver and wait until it answers."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        address = ("-h", "127.0.0.1", "-p", str(self.port))
        self._start("dagster-webserver", "-w", "dagster_workspace.yaml", *address)
        until(self._answers, "the webserver answers")

    def _answers(self) -> bool:
        with suppress(httpx.TransportError):
            url = f"http://127.0.0.1:{self.port}/server_info"
            return httpx.get(url, trust_env=False).is_success
        return False

    def _start(self, program: str, *arguments: str) -> None:
        command = [str(Path(sys.executable).with_name(program)), *arguments]
        with (self.folder / f"{program}.log").open("ab") as log:
            self.processes[program] = subprocess.Popen(
                command, env=self._clean(), cwd=CHECKOUT, stdout=log, stderr=log
            )

    def ask(self, query: str, **variables: Any) -> Any:
        """Ask over GraphQL; return the one field of the answer."""
        answer = httpx.post(
            f"http://127.0.0.1:{self.port}/graphql",
            json={"query": query, "variables": variables},
            trust_env=False,
            timeout=60,
        )
        self.answers.append(answer.text)
        told = answer.json()
        assert "errors" not in told, told
        return next(iter(told["data"].values()))

    def backfill(self, partitions: list[str], *, refetch: bool = False) -> str:
        """Launch a backfill of every asset; return its id."""
        params: dict[str, Any] = {
            "partitionNames": partitions,
            "assetSelection": [{"path": name.split("/")} for name in sorted(KEYS)],
        }
        if refetch:
            params["runConfigData"] = {"ops": {"fetch": {"config": {"refetch": True}}}}
        launched = self.ask(LAUNCH, params=params)
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        return str(launched["backfillId"])

    def state(self, backfill: str) -> Any:
        """Return what the page of a backfill shows."""
        return self.ask(BACKFILL, id=backfill)

    def ended(self, backfill: str) -> Any:
        """Wait for the end of a backfill and of its runs; return what its page shows then."""

        def over() -> Any:
            state = self.state(backfill)
            going = [each for each in state["runs"] if each["status"] in {"STARTED", "CANCELING"}]
            ended = state["status"].startswith(("COMPLETED", "FAILED", "CANCELED"))
            return state if ended and not going else None

        return until(over, f"the end of backfill {backfill}")

    @contextmanager
    def instance(self) -> Iterator[dg.DagsterInstance]:
        """Open the instance as a second reader."""
        with dg.DagsterInstance.from_config(str(self.home)) as opened:
            yield opened

    def runs(self) -> list[dg.DagsterRun]:
        """Return all runs, the oldest first."""
        with self.instance() as opened:
            return list(reversed(opened.get_runs()))

    def kill(self, *numbers: int) -> None:
        """Kill processes of ours with -9."""
        for number in numbers:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        for process in self.processes.values():
            if process.pid in numbers:
                process.wait()

    def below(self) -> dict[int, str]:
        """Return every process of ours and of what ours began, each with its command line."""
        parents = dict(_parents())
        found = {process.pid for process in self.processes.values() if process.poll() is None}
        while more := {child for child, parent in parents.items() if parent in found} - found:
            found |= more
        return {number: _command(number) for number in found}

    def end(self) -> None:
        """End what was started: in its own way, then by force."""
        there = self.below()
        for process in self.processes.values():
            process.send_signal(signal.SIGINT)
        for process in self.processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
        self.kill(*there)
        for process in self.processes.values():
            process.wait()


def _parents() -> Iterator[tuple[int, int]]:
    """Yield every process and its parent."""
    for each in PROCESSES.iterdir():
        if each.name.isdigit():
            with suppress(OSError):
                yield int(each.name), int((each / "stat").read_text().rsplit(")", 1)[1].split()[1])


def _command(number: int) -> str:
    with suppress(OSError):
        return (PROCESSES / str(number) / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


@contextmanager
def deployed(folder: Path, environment: Mapping[str, str]) -> Iterator[Deployment]:
    """Yield a deployment; end its processes at the end of the block."""
    made = Deployment(folder, {**environment, "PARTNER_SYNC_HOME": str(folder / "home")})
    try:
        yield made
    finally:
        made.end()
