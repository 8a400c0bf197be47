"""Assets `raw/<stream>`: what the service said about one list, per connection and UTC day.

Today is read from the service. A past day is shown from the archive, without a request. A day
without a scan fails and is never materialized.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

import dagster as dg

from assets.partitions import partition_key, run_partitions
from assets.resources import HomeResource, LogProgress, failure
from assets.scans import DayScan, NoScan, Outcome, scans_of_day
from pipelines.app.session import AppSession
from pipelines.app.sync import ReadRequest
from pipelines.config.settings import Settings
from pipelines.config.streams import Stream

SERVICE = dg.AssetKey(["service"])
SCHEDULED_AT_TAG = "partner-sync/scheduled_at"  # the schedule's tick, ISO 8601
BACKFILL_TAG = "dagster/backfill"


def raw_key(stream: str) -> dg.AssetKey:
    """Return the key of a stream's raw asset."""
    return dg.AssetKey(["raw", stream])


def service_asset() -> dg.AssetSpec:
    """Return the service: an asset that Dagster shows and does not run."""
    return dg.AssetSpec(SERVICE, description="The payments service.", kinds={"api"})


def raw_assets(settings: Settings, partitions: dg.MultiPartitionsDefinition) -> dg.AssetsDefinition:
    """Return the step that reads or shows the selected streams of all its partitions."""

    @dg.multi_asset(
        name="read",
        specs=[_spec(stream) for stream in settings.all_streams().values()],
        can_subset=True,
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def read(
        context: dg.AssetExecutionContext, home: HomeResource
    ) -> Iterator[dg.MaterializeResult[None]]:
        with home.session() as session:
            outcomes = _scans_of_run(context, session)
        yield from _materialize(context, [each for each in outcomes if isinstance(each, DayScan)])
        _fail_for([each for each in outcomes if isinstance(each, NoScan)])

    return read


def _spec(stream: Stream) -> dg.AssetSpec:
    return dg.AssetSpec(
        raw_key(stream.name),
        deps=[SERVICE],
        description=f"Scans of `GET {stream.path}`: every request and answer, and the proof.",
        group_name="raw",
        kinds={"http", "file"},
        tags={"surface": stream.surface},
        skippable=True,  # the good days of a run with a bad one are logged one by one
    )


def _scans_of_run(context: dg.AssetExecutionContext, session: AppSession) -> list[Outcome]:
    streams = tuple(sorted(key.path[-1] for key in context.selected_asset_keys))
    progress = LogProgress(context.log)
    outcomes: list[Outcome] = []
    for partition in run_partitions(context):
        request = read_request(partition.connection, streams, context.run.tags)
        outcomes += scans_of_day(session, partition.day, request, progress)
    return outcomes


def read_request(connection: str, streams: tuple[str, ...], tags: Mapping[str, str]) -> ReadRequest:
    """Return the request of a run: a scheduled one reads whatever was not read since its tick."""
    tick = tags.get(SCHEDULED_AT_TAG)
    trigger = "schedule" if tick else "backfill" if BACKFILL_TAG in tags else "command"
    scheduled_at = datetime.fromisoformat(tick) if tick else None
    return ReadRequest(connection, streams, trigger, scheduled_at)


def _materialize(
    context: dg.AssetExecutionContext, found: list[DayScan]
) -> Iterator[dg.MaterializeResult[None]]:
    """Materialize each stream for the partitions that have a scan, with the proof of each.

    A MaterializeResult stands for every partition of the run, so it is used only for a stream that
    has a scan in each of them.
    """
    for stream in dict.fromkeys(each.stream for each in found):
        scans: dict[str, DayScan] = {
            partition_key(each.connection, each.day): each
            for each in found
            if each.stream == stream
        }
        for partition, each in scans.items():
            context.log.info("%s: %s", partition, each.scan.completeness.sentence(stream))
        if set(scans) == set(context.partition_keys):
            for partition, each in scans.items():
                context.add_asset_metadata(_metadata(each), raw_key(stream), partition)
            yield dg.MaterializeResult(asset_key=raw_key(stream))
        else:
            for partition, each in scans.items():
                context.log_event(
                    dg.AssetMaterialization(
                        raw_key(stream), partition=partition, metadata=_metadata(each)
                    )
                )


def _metadata(found: DayScan) -> dict[str, dg.MetadataValue]:
    """Return the proof of a scan as Dagster shows it with the partition."""
    proof = found.scan.completeness
    return {
        "proof": dg.MetadataValue.text(proof.sentence(found.stream)),
        "complete": dg.MetadataValue.bool(proof.complete),
        "method": dg.MetadataValue.text(proof.method.value),
        "rows": dg.MetadataValue.int(proof.rows),
        "dagster/partition_row_count": dg.MetadataValue.int(proof.rows),
        "requests": dg.MetadataValue.int(proof.requests),
        "scan_id": dg.MetadataValue.text(found.scan.scan_id),
        "source": dg.MetadataValue.text(found.source),
        "read_at": dg.MetadataValue.timestamp(proof.ended_at),
    }


def _fail_for(missing: list[NoScan]) -> None:
    """Fail the step if a list has no scan, and name each of them. Raises Failure."""
    if missing:
        lines = [f"{each.connection}/{each.stream} {each.day}: {each.reason}" for each in missing]
        raise failure("\n".join(["Some lists have no scan.", *lines]))
