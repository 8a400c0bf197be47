"""Here: the Celery application of a worker, which runs what Dagster's daemon launches.

`celery -A assets.worker worker` starts one. Its settings are those of the run launcher in the
dagster.yaml of DAGSTER_HOME, so that they are in one place. Needs the extra `cluster`.
"""

import dagster as dg
from celery import Celery
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tasks import create_execute_job_task, create_resume_job_task

from pipelines.core.errors import ConfigurationError


def make_app() -> Celery:
    """Return the application. Raises ConfigurationError for an instance without Celery."""
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


app = make_app()
