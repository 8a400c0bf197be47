"""`python -m tests.distributed.purging CONNECTIONS DAYS`: what the purge of Dagster's runs takes.

One night of ours is run on a sandbox; its rows in Dagster's PostgreSQL are copied for every
connection and day. `assets.retention` deletes what is old: first with every day to be chosen, then
with none of them, as where `start_date` has moved. Figures for docs/scale.md.
"""

import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path
from uuid import uuid4

import dagster as dg
from sqlalchemy import create_engine, text

from assets import retention
from assets.definitions import defs
from assets.resources import Sync
from tests.distributed import places
from tests.distributed.partitions import took
from tests.distributed.ticks import INSTANCE
from tests.sandbox.running import sandboxed

TODAY = datetime.now(UTC).date()
SMALL = ("--rate=1000", "--partners=20", "--usage=600", "--billing=60")
# What a copy says of itself instead, wherever the run that it is of says it.
OWN = "replace(replace(replace({0}, :run_id, copy.run_id), 'default', copy.name), :day, copy.day)"
ASSETS = [each for each in defs.assets or () if isinstance(each, dg.AssetsDefinition)]
COPIED = (
    "CREATE TABLE copy (run_id varchar, name varchar, day varchar)",
    f"""INSERT INTO runs (run_id, snapshot_id, pipeline_name, status, run_body, create_timestamp)
    SELECT copy.run_id, snapshot_id, pipeline_name, status, {OWN.format("run_body")},
    copy.day::timestamp
    FROM runs, copy WHERE runs.run_id = :run_id""",
    f"""INSERT INTO run_tags (run_id, key, value)
    SELECT copy.run_id, run_tags.key, {OWN.format("value")}
    FROM run_tags, copy WHERE run_tags.run_id = :run_id""",
    f"""INSERT INTO event_logs
    (run_id, event, dagster_event_type, timestamp, step_key, asset_key, partition)
    SELECT copy.run_id, {OWN.format("event")}, dagster_event_type, copy.day::timestamp, step_key,
    asset_key, {OWN.format("partition")} FROM event_logs, copy WHERE event_logs.run_id = :run_id""",
    f"""INSERT INTO asset_check_executions (asset_key, check_name, partition, run_id,
    execution_status, evaluation_event, evaluation_event_timestamp, evaluation_event_storage_id)
    SELECT asset_key, check_name, {OWN.format("partition")}, copy.run_id, execution_status,
    {OWN.format("evaluation_event")}, copy.day::timestamp, evaluation_event_storage_id
    FROM asset_check_executions, copy WHERE asset_check_executions.run_id = :run_id""",
    "DROP TABLE copy",
    "ANALYZE",
)


@contextmanager
def ran(home: Path, url: str) -> Iterator[tuple[dg.DagsterInstance, str]]:
    """Yield an instance in which one night was run, and the run."""
    (home / "dagster.yaml").write_text(INSTANCE.format(url=url))
    os.environ |= {"DAGSTER_HOME": str(home), "PARTNER_SYNC_HOME": str(home / "ours")}
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("connections", ["default"])
        with sandboxed(*SMALL) as service:
            os.environ |= service.environment
            key, sync = f"default|{TODAY}", {"sync": Sync()}
            done = dg.materialize(ASSETS, instance=instance, resources=sync, partition_key=key)
        yield instance, done.run_id


def copied(url: str, run_id: str, connections: int, days: list[date]) -> None:
    """Copy a run for every connection and day."""
    every = product((f"c{number:05}" for number in range(connections)), days)
    rows = [{"id": str(uuid4()), "name": name, "day": str(day)} for name, day in every]
    engine = create_engine(url)
    with engine.begin() as tables:
        tables.execute(text(COPIED[0]))
        tables.execute(text("INSERT INTO copy VALUES (:id, :name, :day)"), rows)
        for statement in COPIED[1:]:
            tables.execute(text(statement), {"run_id": run_id, "day": str(TODAY)})
    engine.dispose()


def megabytes(url: str) -> int:
    """Return the size of a database without what was deleted from it."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as tables:
        tables.execute(text("VACUUM FULL"))
        size = tables.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
    engine.dispose()
    return int(size) // 10**6


def main(connections: int, nights: int) -> None:
    """Print the purge's seconds (processor/elapsed) and what is left."""
    url = places.database()
    days = [TODAY - timedelta(days=each) for each in range(1, nights + 1)]
    with tempfile.TemporaryDirectory() as name, ran(Path(name), url) as (instance, run_id):
        copied(url, run_id, connections, days)
        sys.stdout.write(f"{instance.get_runs_count()} runs in {megabytes(url)} MB\n")
        for first in (days[-1], TODAY):

            def purge(first: date = first) -> object:
                return retention.delete(instance, datetime.now(UTC), first)

            seconds = took(purge)
            left = f"{instance.get_runs_count()} left in {megabytes(url)} MB"
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000
            sys.stdout.write(f"days from {first}: {seconds} s, {memory} MB of memory, {left}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
