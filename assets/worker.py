"""Here: the Celery application of a worker, which runs what Dagster's daemon launches.

`celery -A assets.worker worker` starts one. Its settings are those of the run launcher in the
dagster.yaml of DAGSTER_HOME, so that they are in one place. Needs the extra `cluster`.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import yaml
from celery import Celery
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tasks import create_execute_job_task, create_resume_job_task

from pipelines.core.errors import ConfigurationError


def make_app() -> Celery:
    """Return the application.

    Raises ConfigurationError for an instance without Celery, or without a variable that it names.
    """
    _require_variables()
    with dg.DagsterInstance.get() as instance:
        launcher = instance.run_launcher
    if not isinstance(launcher, CeleryRunLauncher):
        raise ConfigurationError(
            "The dagster.yaml of DAGSTER_HOME has no CeleryRunLauncher. No run is started.",
            "Copy deploy/dagster.yaml into DAGSTER_HOME.",
        )
    app = launcher.celery
    create_execute_job_task(app)
    create_resume_job_task(app)
    return app


def _require_variables() -> None:
    """Raise ConfigurationError where a variable is not set that dagster.yaml names."""
    needed = {"DAGSTER_HOME"}
    file = Path(os.environ.get("DAGSTER_HOME", ""), "dagster.yaml")
    if file.is_file():
        needed.update(_variables(yaml.safe_load(file.read_text("utf-8"))))
    missing = sorted(name for name in needed if not os.environ.get(name))
    if missing:
        raise ConfigurationError(
            f"Environment variables are not set: {', '.join(missing)}. The worker does not start, "
            "so Dagster's runs wait for another one.",
            "Set them for each worker as for Dagster's daemon (docs/scale.md).",
        )


def _variables(value: object) -> Iterator[str]:
    """Yield the names of variables in what a YAML file says: `{env: NAME}`."""
    if isinstance(value, dict):
        for key, entry in value.items():
            if key == "env" and isinstance(entry, str):
                yield entry
            else:
                yield from _variables(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _variables(entry)


try:
    app = make_app()
except ConfigurationError as error:
    # Celery would show the traceback of anything else.
    sys.exit(f"{error} {error.remedy}")
