"""Once for one run key: Dagster itself looks for a schedule's run key within one tick only.

Here: whether a schedule has asked for a run before. Not here: what is asked for (schedule,
freshness).
"""

import dagster as dg

RUN_KEY_TAG = "dagster/run_key"  # Dagster's own, on every run that was asked for with one


def asked(instance: dg.DagsterInstance, run_key: str) -> bool:
    """Tell whether there is a run with this key, whatever became of it."""
    runs = dg.RunsFilter(tags={RUN_KEY_TAG: run_key})
    return bool(instance.get_run_records(runs, limit=1))
