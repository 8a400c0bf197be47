"""Backfills over GraphQL in real processes: one run a connection, cancelled, launched again."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.assets import kept
from tests.assets.deployment import CANCEL, Deployment, deployed, until
from tests.sandbox.running import AUDIENCE, Running, clients_file, started

pytestmark = [pytest.mark.trial, pytest.mark.timeout(900)]

LISTS = ("--rate=0", "--latency-ms=400", "--partners=200", "--usage=900", "--billing=900")
ENOUGH = 8
CLIENTS = """
[[clients]]
id = "acme"
secret = "s-acme"
actor = "distributor"

[[clients]]
id = "beta"
secret = "s-beta"
actor = "distributor"
"""
SECRETS = {"ACME_SECRET": "s-acme", "BETA_SECRET": "s-beta", "PARTNER_SYNC_WINDOW": "0"}
TABLE = """
[{name}]
base_url = "{url}"
auth_url = "{url}"
audience = "{audience}"
client_id = "{name}"
secret = "{upper}_SECRET"
"""


@dataclass(frozen=True)
class Stage:
    """A deployment of two connections with two archived days each, and the service."""

    deployment: Deployment
    service: Running
    days: list[str]

    @property
    def home(self) -> Path:
        """PARTNER_SYNC_HOME."""
        return self.deployment.folder / "home"

    def partitions(self, *names: str, days: list[str] | None = None) -> list[str]:
        """Return the keys of connections on days."""
        return [f"{name}|{day}" for name in names for day in days or self.days]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("stage")
    config = folder / "home" / "config"
    config.mkdir(parents=True)
    with started(*LISTS, "--clients", str(clients_file(folder, CLIENTS))) as service:
        told = {"url": service.url, "audience": AUDIENCE}
        tables = [TABLE.format(name=name, upper=name.upper(), **told) for name in ("acme", "beta")]
        (config / "connections.toml").write_text("".join(tables))
        days = kept.nights(folder / "home", SECRETS, 2)
        with deployed(folder, SECRETS) as deployment:
            deployment.webserver()
            deployment.daemon()
            today = datetime.now(UTC).date().isoformat()
            yield Stage(deployment, service, [*days, today])


def counts(state: Any) -> dict[str, tuple[int, int, int]]:
    """Return how many days of each asset are wanted, done and failed on a backfill's page."""
    names = ("Targeted", "Materialized", "Failed")
    return {
        "/".join(each["assetKey"]["path"]): (*(each[f"numPartitions{name}"] for name in names),)
        for each in state["assetBackfillData"]["assetBackfillStatuses"]
    }


def test_a_cancelled_backfill_is_launched_again_and_reads_no_linked_page_twice(
    stage: Stage,
) -> None:
    both = stage.partitions("acme", "beta")
    first = stage.deployment.backfill(both)
    until(lambda: len(kept.linked(stage.home)) >= ENOUGH, "pages of today")

    assert stage.deployment.ask(CANCEL, id=first)["__typename"] == "CancelBackfillSuccess"
    cancelled = stage.deployment.ended(first)

    assert cancelled["status"] == "CANCELED"
    linked, before = kept.linked(stage.home), kept.requests(stage.home)
    assert len(linked) >= ENOUGH
    again = stage.deployment.ended(stage.deployment.backfill(both))
    assert again["status"] == "COMPLETED_SUCCESS"
    assert [run["status"] for run in again["runs"]] == ["SUCCESS", "SUCCESS"]  # one a connection
    assert kept.asked(stage.home, before) & linked == set()
    assert set(counts(again).values()) == {(6, 6, 0)}


def test_a_day_that_was_never_read_is_the_one_that_fails_on_the_page(stage: Stage) -> None:
    unread = (datetime.now(UTC).date() - timedelta(days=3)).isoformat()
    days = [unread, *stage.days[:2]]

    state = stage.deployment.ended(stage.deployment.backfill(stage.partitions("acme", days=days)))

    assert state["status"] == "COMPLETED_FAILED"
    (run,) = state["runs"]
    assert run["status"] == "FAILURE"
    shown = counts(state)
    assert shown.pop("published/warehouse") == (3, 2, 1)
    reports = {key: shown.pop(key) for key in [*shown] if key.startswith("reports/")}
    assert set(reports.values()) == {(3, 0, 3)}  # shown when the night is whole; the file has them
    assert set(shown.values()) == {(3, 3, 0)}


def test_two_runs_of_one_connection_and_day_share_one_manifest(stage: Stage) -> None:
    today = stage.partitions("beta", days=stage.days[-1:])
    sql = "SELECT count(*) FROM manifests WHERE connection = 'beta' AND day = ?"
    ((before,),) = kept.query(stage.home, sql, stage.days[-1])

    both = [stage.deployment.backfill(today, refetch=True) for _ in range(2)]

    ends = [stage.deployment.ended(each) for each in both]
    assert [end["status"] for end in ends] == ["COMPLETED_SUCCESS", "COMPLETED_SUCCESS"]
    assert kept.query(stage.home, sql, stage.days[-1]) == [(before + 3,)]
