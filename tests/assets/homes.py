"""Scans of past days in a home, and runs on an instance."""

from datetime import UTC, date, datetime, timedelta

import dagster as dg

from assets.definitions import build_defs
from assets.keys import partition_key, raw_key
from pipelines.app.progress import NoProgress
from pipelines.app.session import open_session
from pipelines.app.sync import ReadRequest, read_connection
from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from pipelines.metadata.tables import Scan

STREAMS = ("billing", "partners", "usage")
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
RAW = [raw_key(stream) for stream in STREAMS]


def days_ago(days: int) -> date:
    """Return an earlier UTC day."""
    return datetime.now(UTC).date() - timedelta(days=days)


def key(connection: str, days: int = 0) -> str:
    """Return the partition key of a connection, today or some days ago."""
    return str(partition_key(connection, days_ago(days)))


def archive_day(home: Home, connection: str, days: int, *streams: str) -> None:
    """Read lists (none named: all) now and record their scans under an earlier day."""
    with open_session(home) as session:
        request = ReadRequest(connection, streams or None)
        read = read_connection(session, request, NoProgress())
        with session.metadata.transaction() as db:
            for stream in read.streams:
                db.get_one(Scan, stream.scan_id).day = days_ago(days)


def run_raw(
    home: Home, instance: dg.DagsterInstance, first: str, last: str = "", **tags: str
) -> dg.ExecuteInProcessResult:
    """Materialize all raw assets of a range of partitions, as a backfill's run does."""
    bounds = {
        "dagster/asset_partition_range_start": first,
        "dagster/asset_partition_range_end": last or first,
    }
    job = build_defs(load_settings(home)).resolve_implicit_job_def_def_for_assets(RAW)
    assert job
    return job.execute_in_process(
        instance=instance,
        tags={**bounds, **tags},
        asset_selection=RAW,
        run_config=QUIET,
        raise_on_error=False,
    )


def run_job(home: Home, instance: dg.DagsterInstance, name: str) -> dg.ExecuteInProcessResult:
    """Run an unpartitioned job."""
    job = build_defs(load_settings(home)).resolve_job_def(name)
    return job.execute_in_process(instance=instance, run_config=QUIET, raise_on_error=False)


def materialized(instance: dg.DagsterInstance, stream: str) -> set[str]:
    """Return the partitions of a raw asset that are materialized."""
    return set(instance.get_materialized_partitions(raw_key(stream)))


def proofs(instance: dg.DagsterInstance, stream: str) -> dict[str, dict[str, object]]:
    """Return the metadata of the newest materialization of each partition of a raw asset."""
    records = instance.fetch_materializations(raw_key(stream), limit=100).records
    return {
        str(record.partition_key): {
            name: value.value for name, value in record.asset_materialization.metadata.items()
        }
        for record in reversed(records)
        if record.asset_materialization
    }


def failure_text(result: dg.ExecuteInProcessResult, step: str = "read") -> str:
    """Return the message with which a step failed."""
    assert not result.success
    data = result.failure_data_for_node(step)
    assert data
    assert data.error
    return data.error.message
