"""A home and a Dagster instance that works on it: scans of past days, runs, what they showed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg
from msgspec.structs import replace
from sqlalchemy.orm import Session

from assets.definitions import deployment, home_defs
from assets.names import Names, partition_key
from pipelines.app.nightly import read
from pipelines.app.results import LoggedProgress, ReadRequest
from pipelines.app.session import open_session
from pipelines.archive.scan_file import OpenScan, SealedScan
from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from pipelines.metadata.tables import Scan
from tests.sandbox.running import Running

STREAMS = ("billing", "partners", "usage")
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
ONE = Names()  # of a deployment of one home
RAW = [ONE.raw(stream) for stream in STREAMS]
Result = dg.ExecuteInProcessResult


def stay_within_a_day(minutes: int) -> None:
    """Wait until the next day begins if this one (UTC) ends within so many minutes.

    Partitions are days: a test that begins on one and ends on the next one counts others.
    """
    now = datetime.now(UTC)
    midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
    if midnight - now < timedelta(minutes=minutes):
        time.sleep((midnight - now).total_seconds() + 1)


def days_ago(days: int) -> date:
    return datetime.now(UTC).date() - timedelta(days=days)


def key(connection: str, days: int = 0) -> str:
    """Return the partition key of a connection, today or some days ago."""
    return str(partition_key(connection, days_ago(days)))


@dataclass
class Site:
    """A home with connections to a sandbox, and the instance that knows them."""

    home: Home
    instance: dg.DagsterInstance
    sandbox: Running
    names: Names = field(default=ONE, kw_only=True)

    @property
    def defs(self) -> dg.Definitions:
        """The code location, with the settings as they are now."""
        return deployment(home_defs(self.names, load_settings(self.home)))

    @contextmanager
    def database(self) -> Iterator[Session]:
        with open_session(self.home) as session, session.metadata.transaction() as db:
            yield db

    def requests(self) -> int:
        return int(self.sandbox.statistics()["admitted"])

    def archive_day(self, connection: str, days: int, *streams: str) -> None:
        """Read lists (none named: all) now and record their scans under an earlier day."""
        with open_session(self.home) as session:
            request = ReadRequest(connection, streams)
            results, _early = read(session, [request], LoggedProgress(), publish_early=False)
        with self.database() as db:
            for result in results:
                assert result.scan
                row = db.get_one(Scan, result.scan.scan_id)
                row.day = days_ago(days)
                row.sha256 = copy_under_day(result.scan, row.day)

    def run_raw(self, first: str, last: str = "", *streams: str, **tags: str) -> Result:
        """Materialize raw assets (none named: all) of partitions, as a backfill's run does."""
        bounds = {"start": first, "end": last or first}
        tags |= {f"dagster/asset_partition_range_{name}": each for name, each in bounds.items()}
        chosen = [self.names.raw(each) for each in streams or STREAMS]
        job = self.defs.resolve_implicit_job_def_def_for_assets(chosen)
        assert job
        return self._run(job, tags=tags, asset_selection=chosen)

    def run_job(self, name: str) -> Result:
        """Run an unpartitioned job."""
        return self._run(self.defs.resolve_job_def(self.names.of(name)))

    def run_export(self, target: str, *tables: str) -> Result:
        """Materialize the export of tables."""
        job = self.defs.resolve_implicit_job_def_def_for_assets([self.names.exports])
        assert job
        step = self.names.of("exports__tables")
        config = {"ops": {step: {"config": {"target": target, "tables": [*tables]}}}}
        return self._run(job, asset_selection=[self.names.exports], run_config=config)

    def _run(self, job: dg.JobDefinition, **options: Any) -> Result:
        options["run_config"] = QUIET | options.get("run_config", {})
        return job.execute_in_process(instance=self.instance, raise_on_error=False, **options)

    def materialized(self, stream: str) -> set[str]:
        """Return the partitions of a raw asset that are materialized."""
        return set(self.instance.get_materialized_partitions(self.names.raw(stream)))

    def shown(self, asset: dg.AssetKey) -> dict[str, dict[str, object]]:
        """Return the metadata of the newest materialization of each partition of an asset."""
        records = self.instance.fetch_materializations(asset, limit=100).records
        events = [each.asset_materialization for each in reversed(records)]
        return {
            str(each.partition): {name: value.value for name, value in each.metadata.items()}
            for each in events
            if each
        }


def copy_under_day(scan: SealedScan, day: date) -> str:
    """Replace a scan file by one that began on another day; return its digest."""
    part = OpenScan.create(scan.path.with_name("part"), replace(scan.header, day=day))
    for exchange in scan.exchanges():
        part.append(exchange, durable=False)
    sealed = part.seal(scan.completeness)
    sealed.path.rename(scan.path)
    return sealed.sha256


def failure_text(result: Result, step: str = "read") -> str:
    """Return the message with which a step failed."""
    assert not result.success
    data = result.failure_data_for_node(step)
    assert data
    assert data.error
    return data.error.message
