"""Assets `current/<stream>` and `history/<stream>`: the typed tables in the work database.

One fold makes both: the rows as they were read last, and every version that they had.
"""

from collections.abc import Iterator, Sequence

import dagster as dg

from assets import archive, catalog, landing, tables
from assets.partitions import PARTITIONS, parts
from assets.resources import Sync, connection, there
from assets.streams import STREAMS, chosen, foreign, opened
from pipelines import run
from pipelines.errors import PartnerSyncError
from pipelines.run import Evidence, Order
from pipelines.warehouse.meta import Fold

Landed = Fold | PartnerSyncError


def key(stream: str) -> dg.AssetKey:
    """Return the asset key of a stream's current tables."""
    return catalog.key("current", stream)


def versions(stream: str) -> dg.AssetKey:
    """Return the asset key of a stream's history."""
    return catalog.key("history", stream)


@dg.multi_asset(
    name="fold",
    specs=[
        spec
        for stream in STREAMS
        for spec in (
            catalog.of_stream("current", stream, {"duckdb", "table"}, [archive.key(stream.name)]),
            catalog.of_stream("history", stream, {"duckdb", "view"}, [key(stream.name)]),
        )
    ],
    check_specs=[each.spec(key(stream.name)) for stream in STREAMS for each in landing.ALL],
    can_subset=True,
    partitions_def=PARTITIONS,
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def fold(context: dg.AssetExecutionContext, sync: Sync) -> Iterator[dg.MaterializeResult[None]]:
    """Fold what was read of the run's days; days that were published before are replayed."""
    with sync.session(context) as session:
        of = {part: connection(session, part.connection) for part in parts(context)}
        mine = {part: opened(of[part], chosen(context, key, versions)) for part in of}
        run_id = context.run.run_id
        orders = [Order(of[part], part.day, mine[part], run=run_id) for part in of]
        folded = run.fold_days(session, orders)
        there(context, session, folded.values())
        shown = run.evidence(session, orders)
    for stream, evidence in shown.items():
        outcomes = [each for (_connection, name), each in folded.items() if name == stream]
        yield from _results(context, stream, evidence, outcomes)
    for each in (key, versions):
        yield from foreign(context, each, shown)


def _results(
    context: dg.AssetExecutionContext, stream: str, evidence: Evidence, outcomes: Sequence[Landed]
) -> Iterator[dg.MaterializeResult[None]]:
    failures = [each for each in outcomes if isinstance(each, PartnerSyncError)]
    _tell(context, stream, evidence)
    if key(stream) in context.selected_asset_keys:
        yield dg.MaterializeResult(
            asset_key=key(stream),
            metadata=tables.of_current(stream, evidence),
            check_results=list(landing.results(stream, evidence, failures)),
        )
    if versions(stream) in context.selected_asset_keys:
        yield dg.MaterializeResult(
            asset_key=versions(stream), metadata=tables.of_history(stream, evidence)
        )


def _tell(context: dg.AssetExecutionContext, stream: str, evidence: Evidence) -> None:
    """Say of each day what it made of the tables, of the connection whose day it is."""
    days = {(each.connection, each.day): each for each in evidence.landings}
    for part in parts(context):
        found = days.get((part.connection, part.day))
        if found is None:
            continue
        for asset, numbers in (
            (key(stream), tables.of_day(found)),
            (versions(stream), tables.of_versions(found)),
        ):
            if asset in context.selected_asset_keys:
                context.add_asset_metadata(numbers, asset, part.key)
