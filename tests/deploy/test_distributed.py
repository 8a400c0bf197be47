"""deploy/distributed: what its files say of each other and of settings; none is started here."""

import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.executor import celery_config
from pipelines.settings import PREFIX, Settings

PLACE = Path(__file__).parents[2] / "deploy" / "distributed"


def read(name: str) -> Any:
    return dg.config_from_files([str(PLACE / name)])


def test_compose_has_a_worker_of_every_queue() -> None:
    commands = [each.get("command", []) for each in read("compose.yaml")["services"].values()]
    queues = {each[each.index("-Q") + 1] for each in commands if "-Q" in each}
    launcher = read("dagster.yaml")["run_launcher"]["config"]
    default = celery_config()["config_source"]["task_default_queue"]
    assert queues == {launcher["default_queue"], "fetch", default}


def test_what_has_no_login_is_published_to_this_machine_alone() -> None:
    published = {
        name: each["ports"]
        for name, each in read("compose.yaml")["services"].items()
        if "ports" in each
    }
    assert published == {"webserver": ["127.0.0.1:3000:3000"]}


def test_the_cluster_has_the_limits_of_the_instance() -> None:
    runs = read("dagster.yaml")["concurrency"]["runs"]
    chart = read("values.yaml")["dagsterDaemon"]["runCoordinator"]["config"]["queuedRunCoordinator"]
    assert chart["maxConcurrentRuns"] == runs["max_concurrent_runs"]
    assert chart["tagConcurrencyLimits"] == runs["tag_concurrency_limits"]
    launcher = read("values.yaml")["runLauncher"]["config"]["customRunLauncher"]
    assert launcher == read("dagster.yaml")["run_launcher"]


def test_the_environment_names_settings_that_there_are() -> None:
    lines = (PLACE / "environment.example").read_text().splitlines()
    names = {line.split("=")[0].removeprefix(PREFIX) for line in lines if line.startswith(PREFIX)}
    assert names <= {name.upper() for name in Settings.model_fields}


@pytest.mark.parametrize("name", ["compose.yaml", "values.yaml", "dagster.yaml"])
def test_no_file_holds_a_password(name: str) -> None:
    assert not re.search(r"://[^/\s]*:[^/\s]*@", (PLACE / name).read_text())
