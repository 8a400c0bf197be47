"""Dagster as it is deployed: webserver, daemon and code server as processes, told over GraphQL."""

import os
import shutil
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
from assets.names import Names
from pipelines.config.home import Home
from tests.assets.homes import STREAMS, Site
from tests.sandbox.running import Running

BACKFILL = """
mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  ... on LaunchBackfillSuccess { backfillId } ... on Error { message } } }
"""
RUN = """
mutation ($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
  ... on LaunchRunSuccess { run { runId } } ... on Error { message } } }
"""
TERMINATE = "mutation ($id: String!) { terminateRun(runId: $id) { __typename } }"
LOGS = """
query ($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {
  ... on MessageEvent { message } ... on ErrorEvent { error { message stack } }
} } } }
"""
CODE = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }"
JOB = {
    "repositoryName": "__repository__",
    "repositoryLocationName": "partner-sync",
    "pipelineName": "__ASSET_JOB",
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

    def has_code(self) -> bool:
        """Return whether the webserver has reached the code server."""
        return bool(self.ask(CODE)["nodes"])

    def _selection(self, *streams: str) -> list[dict[str, Sequence[str]]]:
        return [{"path": self.names.raw(stream).path} for stream in streams or STREAMS]

    def backfill(self, partitions: list[str]) -> str:
        """Launch a backfill of every raw asset; return its id."""
        params = {"partitionNames": partitions, "assetSelection": self._selection()}
        answer = self.ask(BACKFILL, params=params)
        assert "backfillId" in answer, answer["message"]
        return str(answer["backfillId"])

    def backfill_ended(self, backfill: str) -> str:
        """Wait for the end of a backfill; return its status."""

        def status() -> str | None:
            found = self.instance.get_backfill(backfill)
            return found.status.value if found and found.status.value != "REQUESTED" else None

        return until(status, "the end of the backfill")

    def run(self, partition: str, *streams: str) -> str:
        """Launch a run of one partition of raw assets (none named: all), as a person does.

        Returns its id.
        """
        connection, day = partition.split("|")
        names = {"": partition, "/connection": connection, "/day": day}
        tags = [{"key": f"dagster/partition{name}", "value": names[name]} for name in names]
        selector = {**JOB, "assetSelection": self._selection(*streams)}
        params = {"mode": "default", "selector": selector, "executionMetadata": {"tags": tags}}
        answer = self.ask(RUN, params=params)
        assert "run" in answer, answer["message"]
        return str(answer["run"]["runId"])

    def runs(self, job: str | None = None) -> Sequence[dg.DagsterRun]:
        """Return the runs, of one job of this home where it is given."""
        name = self.names.of(job) if job else None
        return self.instance.get_runs(dg.RunsFilter(job_name=name))

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
    home = site.home
    prepare_instance(home)
    own = {"PARTNER_SYNC_HOME": str(home.root), **environment}
    with serving(home.dagster, own) as (instance, port):
        yield Deployment(home, instance, site.sandbox, port)


@contextmanager
def deployed_homes(
    sandboxes: Mapping[str, Running], folder: Path, **environment: str
) -> Iterator[dict[str, Deployment]]:
    """Yield the deployment of all homes in a folder, by the names of their folders."""
    dagster = folder.with_name("dagster")
    dagster.mkdir()
    shutil.copyfile(CHECKOUT / "assets" / "dagster.yaml", dagster / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(dagster)):
        """Its databases are created here, before two processes create them at once."""
    own = {"PARTNER_SYNC_HOMES": str(folder), **environment}
    with serving(dagster, own) as (instance, port):
        yield {
            name: Deployment(
                Home(folder / name), instance, sandbox, port, names=Names.of_folder(name)
            )
            for name, sandbox in sandboxes.items()
        }


@contextmanager
def serving(
    dagster: Path, environment: Mapping[str, str]
) -> Iterator[tuple[dg.DagsterInstance, int]]:
    """Run Dagster on a prepared DAGSTER_HOME for the block; yield the instance and the port."""
    port = free_port()
    own = {"DAGSTER_HOME": str(dagster), **environment}
    with (
        started(dagster_command(str(port)), own, port, dagster / "dagster.log"),
        dg.DagsterInstance.from_config(str(dagster)) as instance,
    ):
        # Until then the UI lets nobody launch a backfill, and an open dialog does not ask again.
        until(lambda: "BACKFILL" in instance.get_daemon_heartbeats(), "the daemon of backfills")
        yield instance, port
