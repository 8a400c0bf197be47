"""Homes with connections to a sandbox, scans of past days in them, and runs on an instance."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg

from assets.definitions import build_defs
from assets.partitions import partition_key
from pipelines.app.progress import NoProgress
from pipelines.app.session import open_session
from pipelines.app.sync import ReadRequest, read_connection
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from pipelines.metadata.tables import Scan
from tests.sandbox.running import Running

STREAMS = ("billing", "partners", "usage")
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
RAW = [dg.AssetKey(["raw", stream]) for stream in STREAMS]


def today() -> date:
    """Return the UTC day."""
    return datetime.now(UTC).date()


def days_ago(days: int) -> date:
    """Return an earlier UTC day."""
    return today() - timedelta(days=days)


def new_home(folder: Path, sandbox: Running, *connections: str) -> Home:
    """Make a home whose connections all read one sandbox."""
    home = Home(folder).prepare()
    for name in connections:
        add_connection(home.connections_file, name, sandbox.connection)
    return home


def archive_day(home: Home, connection: str, day: date, streams: Iterable[str] = STREAMS) -> None:
    """Read lists now and record their scans under a past day."""
    with open_session(home) as session:
        request = ReadRequest(connection, tuple(streams))
        result = read_connection(session, request, NoProgress())
        scans = [stream.scan_id for stream in result.streams]
        assert all(scans), result
        with session.metadata.transaction() as db:
            for scan_id in scans:
                db.get_one(Scan, scan_id).day = day


def key(connection: str, day: date) -> str:
    """Return a partition key."""
    return str(partition_key(connection, day))


def run_raw(
    home: Home,
    instance: dg.DagsterInstance,
    first: str,
    last: str | None = None,
    *,
    tags: dict[str, str] | None = None,
) -> dg.ExecuteInProcessResult:
    """Materialize all raw assets of a range of partitions, as a backfill's run does."""
    bounds = {
        "dagster/asset_partition_range_start": first,
        "dagster/asset_partition_range_end": last or first,
    }
    defs = build_defs(load_settings(home))
    job = defs.resolve_implicit_job_def_def_for_assets(RAW)
    assert job
    return job.execute_in_process(
        instance=instance,
        tags={**bounds, **(tags or {})},
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
    return set(instance.get_materialized_partitions(dg.AssetKey(["raw", stream])))


def proofs(instance: dg.DagsterInstance, stream: str) -> dict[str, dict[str, object]]:
    """Return the metadata of the newest materialization of each partition of a raw asset."""
    records = instance.fetch_materializations(dg.AssetKey(["raw", stream]), limit=100).records
    return {
        str(record.partition_key): {
            name: value.value for name, value in record.asset_materialization.metadata.items()
        }
        for record in reversed(records)
        if record.asset_materialization
    }


def failure_text(result: dg.ExecuteInProcessResult, step: str = "read") -> str:
    """Return the message with which a step failed."""
    data = result.failure_data_for_node(step)
    assert data
    assert data.error
    return data.error.message


def log_text(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> str:
    """Return everything that Dagster keeps about a run."""
    return " ".join(str(entry) for entry in instance.all_logs(result.run_id))
