"""Asset `published/warehouse`: the file that analysts open, all streams at once.

The last step of a run: it publishes what was folded, and only then fails for what was not.
"""

import dagster as dg

from assets import catalog, current
from assets.executor import LAST
from assets.partitions import PARTITIONS, parts
from assets.previews import cost, preview
from assets.resources import Sync, connection
from assets.streams import STREAMS, opened
from pipelines import run
from pipelines.run import Order, Session
from pipelines.settings import load
from pipelines.state import runs
from pipelines.state.versions import Version

Metadata = dict[str, str | int | float | dg.MetadataValue]
NAME = "warehouse"
KEY = catalog.key("published", NAME)
PLACE = catalog.Place(load().place.address)
MOST = 200  # sums shown; the ledger has all


@dg.asset(
    key=KEY,
    deps=[key(stream.name) for stream in STREAMS for key in (current.key, current.versions)],
    description=f"The DuckDB file behind the link `warehouse.duckdb`. {catalog.WORDS['published']}",
    group_name="published",
    kinds={"duckdb", "file"},
    owners=catalog.OWNERS,
    tags={"for": "analysts"},
    code_version=catalog.code_version(catalog.FLOORS["published"]),
    metadata=catalog.metadata("published", PLACE, [catalog.CODE / "warehouse" / "publish.py"]),
    partitions_def=PARTITIONS,
    backfill_policy=dg.BackfillPolicy.single_run(),
    op_tags=LAST,
)
def published(context: dg.AssetExecutionContext, sync: Sync) -> dg.MaterializeResult[None]:
    """Publish the work database, then fail for every day and stream that is not in it."""
    with sync.session(context) as session:
        orders: dict[str, Order] = {}
        for part in parts(context):
            of = connection(session, part.connection)
            orders[part.key] = Order(of, part.day, opened(of), run=context.run.run_id)
        publication = run.publish(session, list(orders.values()))
        metadata = _metadata(publication.version, session) | _cost(session, context.run.run_id)
    if any(publication.lacking):
        lacking = dict(zip(orders, publication.lacking, strict=True))
        raise _failure(context, lacking, metadata)
    return dg.MaterializeResult(metadata=metadata)


def _metadata(version: Version | None, session: Session) -> Metadata:
    """Return what analysts open now: rows, and sums to compare with the service's own."""
    if version is None:
        return {"version": "none: nothing was ever folded"}
    home = session.settings.place
    tables = [
        {"table": name, "rows": count}
        for name, count in version.counts.items()
        if not name.startswith("meta.")
    ]
    sums = [
        {"table": table, "column": column, "sum": total}
        for table, totals in version.totals.items()
        for column, total in totals.items()
        if column not in {"rows", "digest"} and table.startswith("current.")
    ]
    rows = {stream.name: version.counts.get(f"current.{stream.name}", 0) for stream in STREAMS}
    return {
        "version": version.file,
        **(
            {} if home.warehouse else {"file": dg.MetadataValue.path(home.published / version.file)}
        ),
        "dagster/uri": home.address,
        "dagster/row_count": sum(rows.values()),
        "rows": sum(rows.values()),
        **{f"rows {name}": count for name, count in rows.items()},
        **({"sums": preview(sums[:MOST])} if sums else {}),
        "tables": preview(tables),
    }


def _cost(session: Session, run_id: str) -> Metadata:
    """Return what the run took from its first step on; Dagster plots the numbers over nights."""
    now = session.clock.now()
    took = (now - runs.began(session.ledger, run_id, now)).total_seconds() / 60
    return {"minutes": round(took, 3), **cost(runs.efforts(session.ledger, run_id).values())}


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
