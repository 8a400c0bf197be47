"""Assets `raw/<stream>`: what the service said about one list, per connection and UTC day.

Today is read from the service. A past day is shown from the archive, without a request. A day
without a scan fails and is never materialized.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import date, datetime
from typing import Any

import dagster as dg

from assets.names import Names, connection_days, partition_key
from assets.resources import home_in
from pipelines.app.days import lists_of_day
from pipelines.app.results import LoggedProgress, ReadRequest, StreamResult
from pipelines.app.session import AppSession
from pipelines.archive.scan_file import SealedScan
from pipelines.config.settings import Settings, Stream

SCHEDULED_AT_TAG = "partner-sync/scheduled_at"  # the schedule's tick, ISO 8601
BACKFILL_TAG = "dagster/backfill"
# Dagster's own: it says with them which partitions a run of a range has.
RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"


def raw_assets(names: Names, settings: Settings) -> dg.AssetsDefinition:
    """Return the step that reads or shows the selected streams of all its partitions."""

    @dg.multi_asset(
        name=names.of("read"),
        specs=[_spec(names, stream) for stream in settings.streams.values()],
        can_subset=True,
        partitions_def=connection_days(names, settings),
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={names.resource},
        pool=names.resource,
    )
    def read(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
        home = home_in(context, names)
        missing = list[str]()
        may_pass = False
        with home.session() as session:
            days = _connections_by_day(_partition_keys(context))
            for day, connections in sorted(days.items()):
                for result in _read_day(context, session, day, connections):
                    reason = result.why_missing(day)
                    missing.append(f"{result.connection}/{result.stream} {day}: {reason}")
                    may_pass = may_pass or result.may_pass
        if missing:
            text = "\n".join(["Some lists have no scan.", *missing])
            raise home.failure(text, may_pass=may_pass)
        # What is materialized was logged, partition by partition.
        yield from ()

    return read


def _spec(names: Names, stream: Stream) -> dg.AssetSpec:
    return dg.AssetSpec(
        names.raw(stream.name),
        deps=[names.service],
        description=f"Scans of `GET {stream.path}`: every request and answer, and the proof.",
        group_name=names.group("raw"),
        kinds={"http", "file"},
        tags={"surface": stream.surface},
        skippable=True,  # its partitions are logged one by one
    )


def _connections_by_day(keys: Collection[str]) -> dict[date, list[str]]:
    """Return the connections of partitions by their day."""
    connections_of = defaultdict[date, list[str]](list)
    for key in keys:
        connection, _separator, date_text = key.partition("|")
        connections_of[date.fromisoformat(date_text)].append(connection)
    return connections_of


def _read_day(
    context: dg.AssetExecutionContext, session: AppSession, day: date, connections: Collection[str]
) -> Iterator[StreamResult]:
    """Materialize each selected stream that has a scan of a day; yield those that have none.

    The connections are read at the same time.
    """
    keys = {key.path[-1]: key for key in context.selected_asset_keys}
    streams = tuple(sorted(keys))
    requests = [read_request(name, streams, context.run.tags) for name in connections]
    for result in lists_of_day(session, day, requests, LoggedProgress()):
        if result.scan:
            source = "archive" if result.source == "archive" else "service"
            _materialize(context, keys[result.stream], result.scan, source)
        if result.why_missing(day):
            yield result


def _partition_keys(context: dg.AssetExecutionContext) -> list[str]:
    """Return all partitions of the run. That of a backfill may have many connections too.

    A backfill of a job has the dimensions of its first partition as tags too, and Dagster's
    `partition_keys` is then that partition alone: github.com/dagster-io/dagster/issues/28861.
    """
    partitions = context.assets_def.partitions_def
    first = context.run.tags.get(RANGE_START_TAG)
    last = context.run.tags.get(RANGE_END_TAG)
    if first is None or last is None or not isinstance(partitions, dg.MultiPartitionsDefinition):
        return list(context.partition_keys)
    key_range = dg.PartitionKeyRange(
        partitions.get_partition_key_from_str(first),
        partitions.get_partition_key_from_str(last),
    )
    keys = partitions.get_partition_keys_in_range(
        key_range, dynamic_partitions_store=context.instance
    )
    return list(keys)


def read_request(connection: str, streams: tuple[str, ...], tags: Mapping[str, str]) -> ReadRequest:
    """Return the request of a run: a scheduled one reads whatever was not read since its tick."""
    tick = tags.get(SCHEDULED_AT_TAG)
    if tick:
        return ReadRequest(connection, streams, "schedule", datetime.fromisoformat(tick))
    trigger = "backfill" if BACKFILL_TAG in tags else "command"
    return ReadRequest(connection, streams, trigger)


def _materialize(
    context: dg.AssetExecutionContext, key: dg.AssetKey, scan: SealedScan, source: str
) -> None:
    """Materialize the partition of a scan, with its proof.

    A MaterializeResult would stand for every partition of the run, also those without a scan.
    """
    proof = scan.completeness
    header = scan.header
    partition = partition_key(header.connection, header.day)
    metadata: dict[str, Any] = {
        "proof": proof.sentence(header.stream),
        "complete": proof.complete,
        "method": proof.method.value,
        "rows": proof.rows,
        "dagster/partition_row_count": proof.rows,
        "requests": proof.requests,
        "scan_id": scan.scan_id,
        "source": source,
        "read_at": dg.MetadataValue.timestamp(proof.ended_at),
    }
    context.log.info("%s: %s", partition, metadata["proof"])
    context.log_event(dg.AssetMaterialization(key, "", metadata, partition=partition))
