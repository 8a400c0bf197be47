"""What is in deploy/ is checked as far as that goes without Docker and without being installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).parents[2]
DEPLOY = CHECKOUT / "deploy"
BIN = Path(sys.executable).parent
UNITS = sorted([*DEPLOY.glob("*.service"), *DEPLOY.glob("*.timer")])
# Only the instance of several machines has these; the other settings are those of one machine.
OF_CLUSTER = {"storage", "run_launcher", "compute_logs"}
OF_CLUSTER_IN_MONITORING = {"start_timeout_seconds", "poll_interval_seconds"}


def load(file: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(file.read_text())
    assert isinstance(loaded, dict)
    return loaded


def test_the_dockerfile_passes_hadolint() -> None:
    subprocess.run([BIN / "hadolint", DEPLOY / "Dockerfile"], check=True)


def test_compose_yaml_has_the_form_of_the_compose_specification() -> None:
    schema = ("--builtin-schema", "vendor.compose-spec")
    subprocess.run([BIN / "check-jsonschema", *schema, DEPLOY / "compose.yaml"], check=True)
    services = load(DEPLOY / "compose.yaml")["services"]
    checked = {name for name, service in services.items() if "healthcheck" in service}
    assert checked == services.keys() - {"cli"}


def test_units_pass_systemd(tmp_path: Path) -> None:
    for unit in UNITS:
        # The programs are those of this environment: systemd looks for them.
        text = unit.read_text().replace("/opt/partner-sync/.venv", str(BIN.parent))
        text = text.replace("WorkingDirectory=/opt/partner-sync", f"WorkingDirectory={CHECKOUT}")
        (tmp_path / unit.name).write_text(text)
    files = [tmp_path / unit.name for unit in UNITS]
    command = ["systemd-analyze", "verify", "--man=no", *map(str, files)]
    verified = subprocess.run(command, check=True, capture_output=True, text=True)
    assert str(tmp_path) not in verified.stderr


@pytest.mark.parametrize(
    "name",
    [
        "telemetry",
        "nux",
        "python_logs",
        "run_queue",
        "sensors",
        "run_retries",
        "retention",
    ],
)
def test_an_instance_of_several_machines_has_the_settings_of_one(name: str) -> None:
    several = load(DEPLOY / "dagster.yaml")
    one = load(CHECKOUT / "assets" / "dagster.yaml")
    assert several[name] == one[name]
    assert several.keys() - one.keys() == OF_CLUSTER
    monitoring = dict(several["run_monitoring"].items() - one["run_monitoring"].items())
    assert monitoring.keys() == OF_CLUSTER_IN_MONITORING


@pytest.mark.parametrize("missing", ["CELERY_BROKER_URL", "DAGSTER_POSTGRES_URL", "DAGSTER_HOME"])
def test_a_worker_without_a_variable_says_which(missing: str, tmp_path: Path) -> None:
    shutil.copy(DEPLOY / "dagster.yaml", tmp_path)
    variables = {
        "DAGSTER_HOME": str(tmp_path),
        "DAGSTER_POSTGRES_URL": "postgresql+psycopg2://127.0.0.1:1/dagster",
        "CELERY_BROKER_URL": "redis://127.0.0.1:1/0",
        "CELERY_BACKEND_URL": "redis://127.0.0.1:1/1",
    }
    del variables[missing]
    others = {name: value for name, value in os.environ.items() if name != missing}
    command = [str(BIN / "celery"), "-A", "assets.worker", "worker"]
    worker = subprocess.run(
        command, env=others | variables, cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert worker.returncode == 1
    assert worker.stderr.startswith(f"Environment variables are not set: {missing}. The worker")
    assert "Traceback" not in worker.stderr
