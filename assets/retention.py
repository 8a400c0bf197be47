"""`python -m assets.retention [DAYS]`: delete the runs and event logs of long ago.

Dagster keeps them for ever. Here: runs that ended, but for the newest of each partition that can be
chosen, which its page and its row counts are made of; days before `start_date` cannot. Not here:
archive and tables (`partner-sync retain`).
"""

import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import dagster as dg

from pipelines import settings

KEPT = 400  # days, as `keep_readings` keeps as many readings
AT_ONCE = 1000
ENDED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]


def delete(instance: dg.DagsterInstance, before: datetime, first: date) -> int:
    """Delete runs created before a moment that tell nothing of a partition; return how many.

    Days before the first that can be chosen are partitions no more.
    """
    telling = set(_telling(instance, first))
    ended = dg.RunsFilter(statuses=ENDED, created_before=before)
    old = [run_id for run_id in instance.get_run_ids(ended) if run_id not in telling]
    for run_id in old:
        instance.delete_run(run_id)
    return len(old)


def _telling(instance: dg.DagsterInstance, first: date) -> Iterator[str]:
    """Yield the run of the last materialization of every partition of every asset."""
    for key in instance.get_asset_keys():
        newest_first = ((each.partition_key, each.run_id) for each in _materialized(instance, key))
        last: dict[str | None, str] = {}
        for partition, run_id in newest_first:
            if partition is None or partition.rpartition("|")[2] >= first.isoformat():
                last.setdefault(partition, run_id)
        yield from last.values()


def _materialized(instance: dg.DagsterInstance, key: dg.AssetKey) -> Iterator[dg.EventLogRecord]:
    """Yield every materialization of an asset, the newest first."""
    cursor, more = None, True
    while more:
        found = instance.fetch_materializations(key, limit=AT_ONCE, cursor=cursor)
        yield from found.records
        cursor, more = found.cursor, found.has_more


def main(arguments: list[str]) -> int:
    """Delete what is older than so many days; return the exit code of a program."""
    asked = arguments[0] if arguments else str(KEPT)
    if not asked.isdecimal() or int(asked) < 1:
        sys.stderr.write(f"how many days are kept? {asked} is no number of days\n")
        return 2
    days, first = int(asked), settings.load().start_date
    with dg.DagsterInstance.get() as instance:
        deleted = delete(instance, datetime.now(UTC) - timedelta(days=days), first)
    sys.stdout.write(f"deleted {deleted} runs older than {days} days\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
