"""Dagster as it is deployed: webserver, daemon, code servers as processes, asked over GraphQL."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil

from assets.dev import prepare_instance
from pipelines.config.home import Home

CHECKOUT = Path(__file__).parents[2]
RAW = ("raw/billing", "raw/partners", "raw/usage")
LAUNCH = """
mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }
"""
BACKFILL = """
query ($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill {
  status
  runs(limit: 50) { runId status }
  assetBackfillData { assetBackfillStatuses { ... on AssetPartitionsStatusCounts {
    assetKey { path } numPartitionsTargeted numPartitionsMaterialized numPartitionsFailed
  } } } } } }
"""
STATUSES = """
query ($keys: [AssetKeyInput!]) { assetNodes(assetKeys: $keys) { assetKey { path }
  assetPartitionStatuses { ... on MultiPartitionStatuses { ranges {
    primaryDimStartKey primaryDimEndKey
    secondaryDim { ... on DefaultPartitionStatuses { materializedPartitions failedPartitions } }
  } } } } }
"""
RUNS = """
query { runsOrError(limit: 100) { ... on Runs { results {
  runId status jobName tags { key value } } } } }
"""
ERRORS = """
query ($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {
  ... on ExecutionStepFailureEvent { error { message } }
  ... on RunFailureEvent { error { message } }
} } } }
"""
TERMINATE = "mutation ($id: String!) { terminateRun(runId: $id) { __typename } }"
SCHEDULES = """
query { schedulesOrError(repositorySelector: {
  repositoryName: "__repository__", repositoryLocationName: "partner-sync"
}) { ... on Schedules { results { name scheduleState { id } } } } }
"""
STOP_SCHEDULE = "mutation ($id: String!) { stopRunningSchedule(id: $id) { __typename } }"
T = TypeVar("T")


def until(found: Callable[[], T | None], what: str, seconds: float = 240) -> T:
    """Wait for something; fail in words when the seconds are over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if there := found():
            return there
        time.sleep(0.5)
    raise AssertionError(f"{what}: not within {seconds} s")


@dataclass
class Deployment:
    """One home and the processes on it; `answers` is all that GraphQL ever returned."""

    home: Home
    environment: Mapping[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    port: int = 0

    def start(self, program: str, *arguments: str) -> None:
        """Start a program of Dagster on this home."""
        own = {name: value for name, value in os.environ.items() if "PARTNER_SYNC" not in name}
        own |= self.environment
        own |= {"PARTNER_SYNC_HOME": str(self.home.root), "DAGSTER_HOME": str(self.home.dagster)}
        command = [str(Path(sys.executable).with_name(program)), *arguments]
        with (self.home.root / f"{program}.log").open("ab") as log:
            self.processes.append(
                subprocess.Popen(command, env=own, cwd=CHECKOUT, stdout=log, stderr=log)
            )

    def start_all(self) -> None:
        """Start the daemon and the webserver, and wait until the webserver answers."""
        self.port = free_port()
        workspace = ("-w", "dagster_workspace.yaml")
        self.start("dagster-webserver", *workspace, "-h", "127.0.0.1", "-p", str(self.port))
        self.start("dagster-daemon", "run", *workspace)
        until(lambda: answers(self.port), "the webserver answers")

    def ask(self, query: str, **variables: Any) -> Any:
        """Ask over GraphQL; return the one field of the answer."""
        answer = httpx.post(
            f"http://127.0.0.1:{self.port}/graphql",
            json={"query": query, "variables": variables},
            trust_env=False,
            timeout=60,
        )
        self.answers.append(answer.text)
        content = answer.json()
        assert "errors" not in content, content
        return next(iter(content["data"].values()))

    def backfill(self, partitions: list[str]) -> str:
        """Launch a backfill of every raw asset; return its id."""
        selection = [{"path": name.split("/")} for name in RAW]
        params = {"partitionNames": partitions, "assetSelection": selection}
        return str(self.ask(LAUNCH, params=params)["backfillId"])

    def ended(self, backfill: str) -> Any:
        """Wait for the end of a backfill; return what its page shows."""

        def over() -> Any:
            state = self.ask(BACKFILL, id=backfill)
            return state if state["status"].startswith(("COMPLETED", "FAILED", "CANCEL")) else None

        return until(over, f"the end of backfill {backfill}")

    def runs(self, job: str | None = None) -> list[Any]:
        """Return the runs, of one job where it is given, newest first."""
        found = self.ask(RUNS)["results"]
        return [run for run in found if job in {None, run["jobName"]}]

    def errors(self) -> list[str]:
        """Return the messages of all failed runs, for a test that expected none."""
        failed = [run["runId"] for run in self.runs() if run["status"] == "FAILURE"]
        events = [event for run in failed for event in self.ask(ERRORS, id=run)["events"]]
        return [event["error"]["message"] for event in events if event.get("error")]

    def stop_schedule(self, name: str) -> None:
        """Switch a schedule off."""
        states = {each["name"]: each["scheduleState"] for each in self.ask(SCHEDULES)["results"]}
        self.ask(STOP_SCHEDULE, id=states[name]["id"])

    def partitions(self) -> dict[str, dict[str, str]]:
        """Return the state of each partition, by stream, as the page of an asset shows it."""
        keys = [{"path": name.split("/")} for name in RAW]
        found: dict[str, dict[str, str]] = {}
        for node in self.ask(STATUSES, keys=keys):
            states = found.setdefault(node["assetKey"]["path"][-1], {})
            for days in node["assetPartitionStatuses"]["ranges"]:
                for state in ("materialized", "failed"):
                    for connection in days["secondaryDim"][f"{state}Partitions"]:
                        states |= {f"{connection}|{day}": state for day in _days(days)}
        return found

    def stop(self) -> None:
        """End what was started: in its own way, then by force."""
        children = [
            child
            for process in self.processes
            if process.poll() is None
            for child in psutil.Process(process.pid).children(recursive=True)
        ]
        for process in self.processes:
            process.send_signal(signal.SIGINT)
        for process in self.processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        for process in self.processes:
            process.kill()
            process.wait()


def _days(days: Mapping[str, Any]) -> Iterator[date]:
    """Yield the days of a range of days that have the same states."""
    day = date.fromisoformat(days["primaryDimStartKey"])
    while day <= date.fromisoformat(days["primaryDimEndKey"]):
        yield day
        day += timedelta(days=1)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def answers(port: int) -> bool:
    """Return whether a webserver answers."""
    with suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/server_info", trust_env=False).is_success
    return False


@contextmanager
def deployed(home: Home, environment: Mapping[str, str]) -> Iterator[Deployment]:
    """Yield a deployment whose processes run; end them at the end of the block."""
    made = Deployment(home, environment)
    prepare_instance(home)
    try:
        made.start_all()
        yield made
    finally:
        made.stop()
