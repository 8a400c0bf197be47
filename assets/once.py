"""Once for one run key: Dagster itself looks for a schedule's run key within one tick only.

Here: for which keys a schedule has asked before. Not here: what is asked for (schedule, freshness).
"""

from collections.abc import Collection

import dagster as dg

RUN_KEY_TAG = "dagster/run_key"  # Dagster's own, on every run that was asked for with one
# A daemon that is killed between making a run and submitting it leaves one that nobody begins: it
# is submitted by the tick that is resumed, if that asks for it again.
SUBMITTED = [each for each in dg.DagsterRunStatus if each is not dg.DagsterRunStatus.NOT_STARTED]


def asked(instance: dg.DagsterInstance, run_keys: Collection[str]) -> set[str]:
    """Return the keys that a run was submitted with, whatever became of it; one query for all.

    One for each of a thousand connections took a good part of the minute that Dagster gives a tick.
    """
    runs = instance.get_runs(dg.RunsFilter(tags={RUN_KEY_TAG: list(run_keys)}, statuses=SUBMITTED))
    return {run.tags[RUN_KEY_TAG] for run in runs}
