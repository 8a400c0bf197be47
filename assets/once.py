"""Once for one run key: Dagster itself looks for a schedule's run key within one tick only.

Here: for which keys a schedule has asked before. Not here: what is asked for (schedule, freshness).
"""

from collections.abc import Collection

import dagster as dg

RUN_KEY_TAG = "dagster/run_key"  # Dagster's own, on every run that was asked for with one


def asked(instance: dg.DagsterInstance, run_keys: Collection[str]) -> set[str]:
    """Return the keys that there is a run with, whatever became of it: one query for all of them.

    One for each of a thousand connections took a good part of the minute that Dagster gives a tick.
    """
    runs = instance.get_runs(dg.RunsFilter(tags={RUN_KEY_TAG: list(run_keys)}))
    return {run.tags[RUN_KEY_TAG] for run in runs}
