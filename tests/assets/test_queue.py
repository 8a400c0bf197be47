"""Real processes: a home whose runs hang, and fill its queue, holds back no other home."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from pipelines.config.home import Home
from tests.assets.deployment import TERMINATE, Deployment, deployed_homes, until
from tests.assets.homes import Site, key
from tests.assets.test_many_homes import EAST, NORTH, SOUTH, USAGE_ROWS
from tests.homes import make_home, rows
from tests.sandbox.running import Running, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

DAYS = 3  # of the backfill
AT_ONCE = 4  # runs of a home, as assets/dagster.yaml has it
SHOPS = [f"shop-{number}" for number in range(AT_ONCE + 2)]
SETTINGS = {  # the schedules of two homes never tick
    NORTH: 'schedule = "0 0 29 2 *"\nrequest_timeout_seconds = 600\n',
    SOUTH: 'schedule = "0 0 29 2 *"\n',
    EAST: 'schedule = "* * * * *"\n',
}


@pytest.fixture
def sandboxes() -> Iterator[dict[str, Running]]:
    """One that hangs, for the first home, and one for the others."""
    sizes = ("--partners=5", "--usage=60", "--billing=20")
    with started("--rate=1000", *sizes) as hanging, started("--rate=1000", *sizes) as other:
        hanging.fault("late", "/v2/usage", value=600.0)
        yield {NORTH: hanging, SOUTH: other, EAST: other}


def test_runs_of_a_home_never_wait_for_those_of_another(
    sandboxes: dict[str, Running], tmp_path: Path
) -> None:
    folder = tmp_path / "homes"
    made = dict[str, Home]()
    for name, sandbox in sandboxes.items():
        for connection in SHOPS if name == NORTH else ["acme"]:
            made[name] = make_home(folder / name, sandbox, connection)
        made[name].settings_file.write_text(SETTINGS[name])
    with dg.DagsterInstance.ephemeral() as unused:
        for days in range(1, DAYS):
            Site(made[SOUTH], unused, sandboxes[SOUTH]).archive_day("acme", days)
    with deployed_homes(sandboxes, folder) as homes:
        north, south, east = (homes[name] for name in sandboxes)
        partitions_of(north, SHOPS)
        partitions_of(south, ["acme"])
        hanging = fill_queue(north)
        check_backfill_and_publication(south)
        check_schedule(east)
        assert states(north, hanging) == {"STARTED": AT_ONCE, "QUEUED": len(SHOPS) - AT_ONCE}
        assert not north.home.link.exists()
        sandboxes[NORTH].reset()
        for run in hanging:
            if states(north, [run]) == {"STARTED": 1}:
                north.ask(TERMINATE, id=run)
        ends = Counter(north.ended(run) for run in hanging)
        assert ends == {"CANCELED": AT_ONCE, "SUCCESS": len(hanging) - AT_ONCE}
        until(north.home.link.exists, "the publication of the first home")


def partitions_of(deployment: Deployment, connections: list[str]) -> None:
    """Wait until the sensor of a home has made its connections known."""

    name = deployment.names.connections

    def known() -> bool:
        return deployment.instance.get_dynamic_partitions(name) == connections

    until(known, "the partitions")


def states(deployment: Deployment, runs: list[str]) -> Counter[str]:
    """Return how many of these runs have which status."""
    found = deployment.instance.get_runs(dg.RunsFilter(run_ids=runs))
    return Counter(run.status.value for run in found)


def fill_queue(deployment: Deployment) -> list[str]:
    """Launch more runs than a home has at once, which hang; return them."""
    # Dagster knows the limit of a pool from the second time on that it looks at the queue.
    until(lambda: any(run.is_finished for run in deployment.runs("checks")), "the first run")
    runs = [deployment.run(key(name)) for name in SHOPS]
    full = {"STARTED": AT_ONCE, "QUEUED": len(SHOPS) - AT_ONCE}
    until(lambda: states(deployment, runs) == full, "as many runs as a home has at once")
    return runs


def check_backfill_and_publication(deployment: Deployment) -> None:
    """A backfill of past days and today is read, and published."""
    backfill = deployment.backfill([key("acme", days) for days in range(DAYS)])
    assert deployment.backfill_ended(backfill) == "COMPLETED_SUCCESS"
    until(lambda: any(run.is_success for run in deployment.runs("publish")), "the publication")
    assert rows(deployment.home, USAGE_ROWS) == [(60,)]
    assert len(deployment.materialized("usage")) == DAYS


def check_schedule(deployment: Deployment) -> None:
    """The schedule of a home ticks; what it reads is published."""
    until(lambda: any(run.is_success for run in deployment.runs("nightly_sync")), "the tick")
    deployment.stop_schedule("east__nightly")
    until(lambda: any(run.is_success for run in deployment.runs("publish")), "the publication")
    assert rows(deployment.home, USAGE_ROWS) == [(60,)]
