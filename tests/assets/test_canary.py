"""Marked secrets over a night by the clock, a failing one and a backfill: they are left nowhere.

In real processes. The command line and whole homes without a daemon are test_connections.py's.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import pytest
from typer.testing import CliRunner

from pipelines.cli.app import app
from tests.assets import kept
from tests.assets.deployment import Deployment, deployed, until
from tests.assets.test_connections import left_behind
from tests.sandbox.running import AUDIENCE, clients_file, started

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(900)]

RIGHT, WRONG = "canary-right-5d0b", "canary-wrong-19aa"
SIZES = ("--rate=0", "--partners=20", "--usage=300", "--billing=60")
# What must be looked through, and a word that is in it: else a secret would not be found either.
KINDS = {
    "home/state/state.sqlite": b"acme",
    "home/config/connections.toml": b"acme",
    "home/archive/manifests/acme/usage/": b"acme",
    ".json.zst unpacked": b'"has_more"',
    "home/work/warehouse.duckdb, table current.": b"acme",
    "home/published/warehouse.v": b"acme",
    "home/exports/": b"acme",
    "dagster/history/runs.db": b"acme",
    "dagster/schedules/schedules.db": b"nightly",
    "dagster-daemon.log": b"acme",
    "dagster-webserver.log": b"127.0.0.1",
    ".err": b"acme",
    "GraphQL": b"acme",
    "events": b"acme",
    "arguments": b"dagster-daemon",
}
CLIENTS = f'[[clients]]\nid = "acme"\nsecret = "{RIGHT}"\nactor = "distributor"\n'
# What pages of Dagster can show of runs, of their logs, and of what definitions are made with.
TOLD = """
{ runsOrError(limit: 50) { __typename ... on Runs { results {
  runConfigYaml tags { key value }
  eventConnection(limit: 1000) { events {
    ... on MessageEvent { message level }
    ... on ErrorEvent { error { message stack causes { message stack } } }
    ... on DisplayableEvent { description metadataEntries {
      label ... on TextMetadataEntry { text } ... on MarkdownMetadataEntry { mdStr }
    } }
} } } } } }
"""
MADE_WITH = """
{ repositoriesOrError { __typename ... on RepositoryConnection { nodes {
  name allTopLevelResourceDetails { name configuredValues { key value type } }
} } } }
"""
TABLE = """
[acme]
base_url = "{url}"
auth_url = "{url}"
audience = "{audience}"
client_id = "acme"
secret = "ACME_SECRET"
"""


@pytest.fixture
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder whose home has one connection, and two nights."""
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    clients = clients_file(tmp_path_factory.mktemp("service"), CLIENTS)
    with started(*SIZES, "--clients", str(clients)) as service:
        (config / "connections.toml").write_text(TABLE.format(url=service.url, audience=AUDIENCE))
        kept.nights(tmp_path / "home", environment(RIGHT), 2)
        yield tmp_path


def environment(secret: str) -> dict[str, str]:
    return {"ACME_SECRET": secret, "PARTNER_SYNC_SCHEDULE": "* * * * *"}


def watched(deployment: Deployment, over: Event, seen: set[str]) -> None:
    """Note the command line of every process that Dagster has on its way."""
    while not over.wait(0.1):
        seen.update(deployment.below().values())


def look(deployment: Deployment, words: str) -> None:
    """Open every page; one of them must have these words, or nothing was looked at."""
    assert len(deployment.ask(TOLD)["results"]) == 2
    assert words in deployment.answers[-1]
    (repository,) = deployment.ask(MADE_WITH)["nodes"]
    assert [each["name"] for each in repository["allTopLevelResourceDetails"]] == ["sync"]


def a_night(deployment: Deployment, status: str) -> set[str]:
    """Let the schedule fire; then a backfill of three days; return the command lines seen."""
    over, seen = Event(), set[str]()
    deployment.webserver()
    deployment.daemon()
    watch = Thread(target=watched, args=(deployment, over, seen))
    watch.start()
    try:
        until(lambda: [each for each in deployment.runs() if each.is_finished], "the nightly run")
        today = datetime.now(UTC).date()
        days = [f"acme|{today - timedelta(days=back)}" for back in (2, 1, 0)]
        state = deployment.ended(deployment.backfill(days, refetch=status != "SUCCESS"))
        look(deployment, "no token: 401" if status == "FAILURE" else "fetch of billing, partners")
    finally:
        over.set()
        watch.join()
    assert [each["status"] for each in state["runs"]] == [status]
    return seen


@pytest.mark.parametrize(("secret", "status"), [(RIGHT, "SUCCESS"), (WRONG, "FAILURE")])
def test_no_secret_is_left_by_a_night_and_a_backfill(
    folder: Path, monkeypatch: pytest.MonkeyPatch, secret: str, status: str
) -> None:
    with deployed(folder, environment(secret)) as deployment:
        commands = a_night(deployment, status)
        assert [run.status.value for run in deployment.runs()] == [status, status]
        with deployment.instance() as instance:
            runs = instance.get_runs()
            told = [str(each) for run in runs for each in instance.all_logs(run.run_id)]
            told += [repr(run) for run in runs]
    monkeypatch.setenv("PARTNER_SYNC_HOME", str(folder / "home"))
    assert CliRunner().invoke(app, ["export", "--to", "csv"]).exit_code == 0
    found = dict(left_behind(folder))
    found |= {"GraphQL": "".join(deployment.answers).encode()}
    found |= {"events": "".join(told).encode(), "arguments": "".join(commands).encode()}
    for kind, word in KINDS.items():
        assert any(kind in name and word in found[name] for name in found), kind
    for marked in (RIGHT, WRONG):
        assert [name for name, content in found.items() if marked.encode() in content] == []
