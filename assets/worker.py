"""What a Celery worker is: `celery -A assets.worker worker -Q fetch,fold`.

Here: Dagster's own tasks on an app that is configured as the executor's, a name for every start,
and our definitions, made once before the worker forks. Not here: how many workers there are of
which queue (deploy/distributed). Only who installed the extra `distributed` can import it.
"""

import secrets
from importlib import import_module
from typing import Any

import dagster as dg
from celery.result import allow_join_result
from celery.signals import celeryd_init, worker_init, worker_process_init
from celery.utils.nodenames import nodename, nodesplit
from dagster_celery.executor import CeleryExecutor
from dagster_celery.make_app import make_app
from dagster_celery.tasks import create_execute_job_task, create_resume_job_task, create_task
from fsspec import get_filesystem_class

from assets.executor import celery_config
from pipelines.settings import load

__all__ = ["app"]

app = make_app(CeleryExecutor.for_cli(**celery_config()).app_args())
for _create in (create_task, create_execute_job_task, create_resume_job_task):
    _create(app)
_asking = allow_join_result()


def _name(instance: Any, **_told: object) -> None:
    """Give every start a name of its own, before Celery gives it to anything else.

    A service manager starts a killed worker again within seconds: under the same name it would
    answer for the steps that died with it, and two workers of one host for each other's.
    """
    name, host = nodesplit(instance.hostname)
    instance.hostname = nodename(f"{name}-{secrets.token_hex(3)}", host)


def _define(**_told: object) -> None:
    """Make every job; load Dagster's storage, the archive's, what draws: once, before the fork.

    Not imported above: the definitions have a sensor that asks this module's app who is there.
    """
    import_module("assets.definitions").defs.get_repository_def().get_all_jobs()
    import_module("pipelines.run.html")  # 1.4 s, else of each process at its first report
    if archive := load().archive:
        get_filesystem_class(archive.partition("://")[0])  # the same at its first page: 0.5 s
    with dg.DagsterInstance.get():
        pass


def _may_ask(**_told: object) -> None:
    """Let a task ask for another one's result: a run is one, and takes its steps' when ready.

    Celery refuses it, since tasks that wait for tasks of their own queue can fill it for ever; runs
    have a queue of their own.
    """
    _asking.__enter__()


celeryd_init.connect(_name, weak=False)
worker_init.connect(_define, weak=False)
worker_process_init.connect(_may_ask, weak=False)
