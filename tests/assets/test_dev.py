"""`make dev` as a process: it opens the UI beside a sandbox, and Ctrl-C ends all of it."""

import sys
from pathlib import Path

import dagster as dg
import pytest

from assets import dev
from pipelines.app.demo import running_sandbox
from pipelines.config.home import Home
from pipelines.core.errors import ConfigurationError
from tests.assets.deployment import free_port, started


@pytest.mark.long
def test_a_home_keeps_its_sandbox_and_an_instance_without_telemetry(tmp_path: Path) -> None:
    home = Home(tmp_path).prepare()
    with running_sandbox(home, dev.CONNECTION, "--port=0", "--usage=1") as service:
        dev.require_same_service(home, service)
    with pytest.raises(ConfigurationError, match=f"belongs to a sandbox on {service}, not on http"):
        dev.require_same_service(home, "http://127.0.0.1:1")
    dev.prepare_instance(home)
    with dg.DagsterInstance.from_config(str(home.dagster)) as instance:
        assert not instance.telemetry_enabled
        assert instance.get_dynamic_partitions("connections") == ["sandbox"]


@pytest.mark.long
def test_ctrl_c_ends_the_sandbox_the_ui_and_the_daemon(tmp_path: Path) -> None:
    log, port, sandbox_port = tmp_path / "log", free_port(), str(free_port())
    own = {"DEV_HOME": str(tmp_path / "home"), "DEV_SANDBOX_PORT": sandbox_port}
    command = [sys.executable, "-m", "assets.dev"]
    with started(command, own | {"DEV_PORT": str(port)}, port, log):
        assert b"Press Ctrl-C to stop." in log.read_bytes()
