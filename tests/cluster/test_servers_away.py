"""PostgreSQL and the code server are away while Dagster's daemon asks for the code."""

import time
from contextlib import ExitStack
from pathlib import Path

import dagster as dg
import pytest

from assets.names import Names
from tests.assets.deployment import Deployment, answers, free_port
from tests.assets.homes import key, stay_within_a_day
from tests.cluster.servers import started_cluster
from tests.cluster.test_machines import reading, until
from tests.homes import make_home
from tests.sandbox.running import started

SIZES = ("--rate", "5", "--partners", "5", "--usage", "8000", "--billing", "10")
SETTINGS = "[streams.usage]\nlimit = 20\n"  # so reading takes 80 seconds
ASKS = 60  # seconds from the first life sign of the daemon until it asks for the code again
AWAY = 20


def test_a_backfill_goes_on_when_the_servers_are_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the variable of `start_daemon`, Dagster fails it and cancels its runs."""
    stay_within_a_day(6)
    with (
        started(*SIZES, awkward=False) as service,
        started_cluster() as cluster,
        ExitStack() as opened,
    ):
        made = make_home(tmp_path / "made", service)
        cluster.configure(made.settings_file.parent, ("worker", "code-server"), SETTINGS)
        for name, value in cluster.environment.items():
            monkeypatch.setenv(name, value)
        instance = opened.enter_context(dg.DagsterInstance.get())
        port = free_port()
        cluster.start_worker("worker")
        cluster.start_code_server()
        cluster.start_daemon()
        cluster.start_webserver(port)
        until(lambda: "BACKFILL" in instance.get_daemon_heartbeats(), "the daemon lives")
        began = time.monotonic()
        connections = Names().connections
        until(lambda: instance.get_dynamic_partitions(connections), "the connection is known")
        until(lambda: answers(port), "the webserver answers")
        deployment = Deployment(made, instance, service, port)
        until(deployment.has_code, "the webserver has the code")
        backfill = deployment.backfill([key("acme")])
        until(lambda: reading(cluster) == {"worker": 1}, "the worker reads")
        time.sleep(max(0.0, began + ASKS - AWAY / 2 - time.monotonic()))
        cluster.kill("code-server")
        cluster.postgresql.stop()
        time.sleep(AWAY)
        cluster.postgresql.start()
        cluster.start_code_server()
        assert deployment.backfill_ended(backfill) == "COMPLETED_SUCCESS"
        log = (cluster.folder / "daemon.log").read_text()
        assert "The backfill will resume once it is available" in log
