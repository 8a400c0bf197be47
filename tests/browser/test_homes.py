"""Dagster's UI of many homes: each is a group with jobs of its own; an unreadable one is red."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from playwright.sync_api import expect

from tests.assets.deployment import Deployment, deployed_homes, until
from tests.assets.homes import key
from tests.assets.test_many_homes import EAST, NORTH, SOUTH
from tests.browser.operator import browser
from tests.homes import make_home
from tests.sandbox.running import started

pytestmark = pytest.mark.timeout(900)

NEVER = 'schedule = "0 0 29 2 *"\n'


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[dict[str, Deployment]]:
    """Two homes, and one with a misspelled setting."""
    sizes = ("--partners=25", "--usage=1500", "--billing=50")
    with started("--rate=1000", *sizes) as sandbox:
        for name in (NORTH, SOUTH, EAST):
            home = make_home(tmp_path / "homes" / name, sandbox)
            home.settings_file.write_text(NEVER)
        home.settings_file.write_text("keep_version = 5\n")
        sandboxes = dict.fromkeys((NORTH, SOUTH, EAST), sandbox)
        with deployed_homes(sandboxes, tmp_path / "homes") as made:
            yield made


def test_homes_are_groups_and_an_unreadable_one_is_red(homes: dict[str, Deployment]) -> None:
    read_and_publish(homes[NORTH])
    wait_for(homes[EAST], dg.DagsterRunStatus.FAILURE)
    with browser(f"http://127.0.0.1:{homes[NORTH].port}", "acme") as operator:
        operator.page.goto("/asset-groups")
        operator.sees("east", "north", "south_1")
        expect(operator.page.get_by_text("fetching statuses")).to_have_count(0)
        operator.picture("homes", height=640)
        operator.page.goto("/jobs")
        operator.sees("east__publish", "north__nightly_sync", "south_1__rebuild")
        operator.picture("homes-jobs", height=610)
        operator.page.goto("/assets/east/published/warehouse?view=overview")
        operator.sees(
            "Failed in", "This home cannot be read. Cannot use the settings: keep_version"
        )
        operator.page.goto("/assets")
        operator.sees("east / published / warehouse", "Failed", "Materialized")


def read_and_publish(deployment: Deployment) -> None:
    """Launch a run that reads, once the connection is known, and wait for the publication."""
    name = deployment.names.connections
    until(lambda: deployment.instance.get_dynamic_partitions(name), "the partitions")
    assert deployment.ended(deployment.run(key("acme"))) == "SUCCESS"
    wait_for(deployment, dg.DagsterRunStatus.SUCCESS)


def wait_for(deployment: Deployment, status: dg.DagsterRunStatus) -> None:
    """Wait for the end of a run of `publish`."""
    what = f"a run of publish that is {status}"
    until(lambda: any(run.status is status for run in deployment.runs("publish")), what)
