"""Asset `published/warehouse`: the file that analysts open, all streams at once.

The last step of a run: it publishes what was folded, and only then fails for what was not.
"""

import dagster as dg

from assets import current
from assets.partitions import PARTITIONS, parts
from assets.previews import preview
from assets.resources import Sync, connection
from assets.streams import STREAMS, opened
from pipelines import run
from pipelines.run import Order
from pipelines.state.versions import Version

Metadata = dict[str, str | dg.MarkdownMetadataValue]
KEY = dg.AssetKey(["published", "warehouse"])


@dg.asset(
    key=KEY,
    deps=[current.key(stream.name) for stream in STREAMS],
    description="The DuckDB file behind the link `warehouse.duckdb`.",
    group_name="published",
    kinds={"duckdb"},
    partitions_def=PARTITIONS,
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def published(context: dg.AssetExecutionContext, sync: Sync) -> dg.MaterializeResult[None]:
    """Publish the work database, then fail for every day and stream that is not in it."""
    with sync.session(context) as session:
        orders: dict[str, Order] = {}
        for part in parts(context):
            of = connection(session, part.connection)
            orders[part.key] = Order(of, part.day, opened(of), run=context.run.run_id)
        publication = run.publish(session, list(orders.values()))
    metadata = _metadata(publication.version)
    if any(publication.lacking):
        lacking = dict(zip(orders, publication.lacking, strict=True))
        raise _failure(context, lacking, metadata)
    return dg.MaterializeResult(metadata=metadata)


def _metadata(version: Version | None) -> Metadata:
    if version is None:
        return {"version": "none: nothing was ever folded"}
    rows = [{"table": name, "rows": count} for name, count in version.counts.items()]
    return {"version": version.file, "tables": preview(rows)}


def _failure(
    context: dg.AssetExecutionContext,
    lacking: dict[str, tuple[str, ...]],
    metadata: Metadata,
) -> dg.Failure:
    """Mark the days that are complete as materialized; return what says which are not."""
    for key, words in lacking.items():
        if not words:
            event = dg.AssetMaterialization(KEY, metadata=metadata, partition=key)
            context.log_event(event)
    said = [f"{key}: {'; '.join(words)}" for key, words in lacking.items() if words]
    return dg.Failure("not everything is published: " + " | ".join(said))
