"""Who executes the steps of a run: the run's own process, or Celery's workers on any machine.

Here: the executor that the setting `executor` names, and the queues. Not here: the broker's address
(Celery's own variables), how many workers there are (deploy/distributed).
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import dagster as dg

FILE = Path(__file__).with_name("celery.yaml")
QUEUE, PRIORITY = "dagster-celery/queue", "dagster-celery/priority"
# Reading waits for the service, folding for a processor: each has workers of its own number. All
# steps without this tag go to the queue that celery.yaml calls the default one.
FETCH = {QUEUE: "fetch"}
# On Redis 0 is first and 9 last; a step without it is a 5. What waits to be folded is folded before
# a publication begins, which then serves all these runs: one of them publishes, the others find it.
LAST = {PRIORITY: "9"}


def celery_config() -> dict[str, Any]:
    """Return how steps go through Celery, for the executor and its workers alike."""
    config: dict[str, Any] = dg.config_from_files([str(FILE)])["execution"]["config"]
    return config


def executor(name: str) -> dg.ExecutorDefinition:
    """Return the executor of a name; Celery is loaded for nobody else (it is an extra)."""
    if name == "in_process":
        # A step of its own process costs seconds; the work is one request budget and one database.
        return dg.in_process_executor
    celery: dg.ExecutorDefinition = import_module("dagster_celery").celery_executor
    return celery.configured(celery_config(), name="celery")


def sensors(name: str) -> list[dg.SensorDefinition]:
    """Return what else has to be watched with an executor."""
    return [] if name == "in_process" else [import_module("assets.workers").lost_workers]
