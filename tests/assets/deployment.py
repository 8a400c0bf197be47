"""Dagster as it is deployed: webserver, daemon and code server as processes, told over GraphQL."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import randrange
from subprocess import Popen
from typing import Any, TypeVar

import dagster as dg
import httpx
import psutil
from dagster._core.scheduler.instigation import InstigatorStatus

from assets.dev import CHECKOUT, dagster_command, prepare_instance
from tests.assets.homes import RAW, Site

BACKFILL = """
mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  ... on LaunchBackfillSuccess { backfillId } } }
"""
RUN = """
mutation ($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
  ... on LaunchRunSuccess { run { runId } } } }
"""
TERMINATE = "mutation ($id: String!) { terminateRun(runId: $id) { __typename } }"
LOGS = """
query ($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {
  ... on MessageEvent { message } ... on ErrorEvent { error { message stack } }
} } } }
"""
SELECTION = [{"path": key.path} for key in RAW]
JOB = {
    "repositoryName": "__repository__",
    "repositoryLocationName": "partner-sync",
    "pipelineName": "__ASSET_JOB",
    "assetSelection": SELECTION,
}
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
class Deployment(Site):
    """A home and the processes on it; `answers` is all that GraphQL ever returned."""

    port: int
    answers: list[str] = field(default_factory=list)

    def ask(self, query: str, **variables: Any) -> Any:
        """Ask over GraphQL; return the one field of the answer."""
        url = f"http://127.0.0.1:{self.port}/graphql"
        body = {"query": query, "variables": variables}
        answer = httpx.post(url, json=body, trust_env=False, timeout=60)
        self.answers.append(answer.text)
        content = answer.json()
        assert "errors" not in content, content
        return next(iter(content["data"].values()))

    def backfill(self, partitions: list[str]) -> str:
        """Launch a backfill of every raw asset; return its id."""
        params = {"partitionNames": partitions, "assetSelection": SELECTION}
        return str(self.ask(BACKFILL, params=params)["backfillId"])

    def run(self, partition: str) -> str:
        """Launch a run of one partition of every raw asset, as a person does; return its id."""
        connection, day = partition.split("|")
        names = {"": partition, "/connection": connection, "/day": day}
        tags = [{"key": f"dagster/partition{name}", "value": names[name]} for name in names]
        params = {"mode": "default", "selector": JOB, "executionMetadata": {"tags": tags}}
        return str(self.ask(RUN, params=params)["run"]["runId"])

    def runs(self, job: str | None = None) -> Sequence[dg.DagsterRun]:
        """Return the runs, of one job where it is given."""
        return self.instance.get_runs(dg.RunsFilter(job_name=job))

    def ended(self, run_id: str) -> str:
        """Wait for the end of a run; return its status."""
        runs = dg.RunsFilter(run_ids=[run_id])
        until(lambda: self.instance.get_runs(runs)[0].is_finished, f"the end of run {run_id}")
        return self.instance.get_runs(runs)[0].status.value

    def stop_schedule(self, name: str) -> None:
        """Switch a schedule off that has ticked."""
        (state,) = [each for each in self.instance.all_instigator_state() if each.name == name]
        self.instance.update_instigator_state(state.with_status(InstigatorStatus.STOPPED))


def free_port() -> int:
    """Return a port that is free, and below those of outgoing connections of other tests."""
    while True:
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port := randrange(10_000, 30_000)))
            return port


def answers(port: int) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/server_info", trust_env=False).is_success
    return False


@contextmanager
def started(
    command: list[str], environment: Mapping[str, str], port: int, log: Path
) -> Iterator[None]:
    """Run a program for the block, whose webserver answers; Ctrl-C ends all of its processes."""
    own = {**os.environ, **environment}
    with (
        log.open("wb") as output,
        Popen(command, cwd=CHECKOUT, env=own, stdout=output, stderr=output) as process,
    ):
        try:
            until(lambda: answers(port), "the webserver answers")
            yield
        finally:
            children = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGINT)
            _, alive = psutil.wait_procs([psutil.Process(process.pid), *children], timeout=90)
            left = [(each.status(), each.cmdline()[-8:]) for each in alive]
            for each in alive:
                each.kill()
    assert len(children) >= 3
    assert (process.returncode, left) == (0, []), (process.returncode, left)


@contextmanager
def deployed(site: Site, **environment: str) -> Iterator[Deployment]:
    """Yield a deployment whose processes run; end them at the end of the block."""
    home, port = site.home, free_port()
    prepare_instance(home)
    own = {"PARTNER_SYNC_HOME": str(home.root), "DAGSTER_HOME": str(home.dagster), **environment}
    with (
        started(dagster_command(str(port)), own, port, home.root / "dagster.log"),
        dg.DagsterInstance.from_config(str(home.dagster)) as instance,
    ):
        yield Deployment(home, instance, site.sandbox, port)
