"""`make dev` as a process: it opens the UI beside a sandbox, and Ctrl-C ends all of it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import dagster as dg
import psutil
import pytest

from assets import dev
from pipelines.config.home import Home
from pipelines.core.errors import ConfigurationError
from tests.assets.deployment import CHECKOUT, answers, free_port, until

READY = (
    "sandbox ready: http://127.0.0.1:{} (client demo, audience partner-sync-sandbox, secret in S)"
)


def ready(port: int) -> re.Match[str]:
    found = dev.READY.match(READY.format(port))
    assert found
    return found


def test_a_home_keeps_its_sandbox(tmp_path: Path) -> None:
    home = Home(tmp_path).prepare()
    dev.connect(home, ready(8010))
    dev.connect(home, ready(8010))

    with pytest.raises(ConfigurationError, match=r"belongs to a sandbox on .*8010, not on .*8011"):
        dev.connect(home, ready(8011))

    assert dev.SECRET in home.connections_file.read_text()


def test_the_instance_has_no_telemetry_and_knows_the_connection(tmp_path: Path) -> None:
    home = Home(tmp_path).prepare()
    dev.connect(home, ready(8010))

    dev.prepare_instance(home)

    with dg.DagsterInstance.from_config(str(home.dagster)) as instance:
        assert not instance.telemetry_enabled
        assert instance.get_dynamic_partitions("connections") == ["sandbox"]


@pytest.mark.long
def test_ctrl_c_ends_the_sandbox_the_ui_and_the_daemon(tmp_path: Path) -> None:
    port = free_port()
    environment = os.environ | {
        "DEV_HOME": str(tmp_path / "home"),
        "DEV_PORT": str(port),
        "DEV_SANDBOX_PORT": str(free_port()),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "assets.dev"],
        cwd=CHECKOUT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        until(lambda: answers(port), "the UI answers")
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 3
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=90)

    assert process.returncode == 0
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
