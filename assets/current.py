"""Assets `current/<stream>`: the typed tables of what was read last, in the work database."""

from collections.abc import Iterator

import dagster as dg

from assets import archive, interface
from assets.partitions import PARTITIONS, days
from assets.resources import Sync
from assets.streams import STREAMS, chosen, foreign, opened
from pipelines import run
from pipelines.errors import PartnerSyncError
from pipelines.run import Order
from pipelines.warehouse.meta import Fold


def key(stream: str) -> dg.AssetKey:
    """Return the asset key of a stream's tables."""
    return dg.AssetKey(["current", stream])


@dg.multi_asset(
    name="fold",
    specs=[
        dg.AssetSpec(
            key(stream.name),
            deps=[archive.key(stream.name)],
            description=stream.description,
            group_name="current",
            kinds={"duckdb"},
            metadata={"dagster/table_name": f"current.{stream.name}"},
            skippable=True,
        )
        for stream in STREAMS
    ],
    check_specs=[
        dg.AssetCheckSpec(check, asset=key(stream.name))
        for stream in STREAMS
        for check in ("folded", "keys_are_unique", interface.AS_DESCRIBED)
    ],
    can_subset=True,
    partitions_def=PARTITIONS,
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def fold(context: dg.AssetExecutionContext, sync: Sync) -> Iterator[dg.MaterializeResult[None]]:
    """Fold each selected stream's newest manifest; one that is folded already costs nothing."""
    newest = max(day for _partition, day in days(context))
    with sync.session(context) as session:
        connection = session.settings.connection()
        selected = opened(connection, chosen(context, key))
        order = Order(connection, newest, selected, run=context.run.run_id)
        folded = run.fold(session, order)
        differences = run.differing(session, connection.name)
    for stream in selected:
        own = [each for each in differences if each.stream == stream.name]
        described = interface.as_described(key(stream.name), own)
        yield _result(stream.name, folded[stream.name], described)
    yield from foreign(context, key, connection)


def _result(
    stream: str, outcome: Fold | PartnerSyncError, described: dg.AssetCheckResult
) -> dg.MaterializeResult[None]:
    passed = isinstance(outcome, Fold)
    words = "" if isinstance(outcome, Fold) else str(outcome)
    folded = dg.AssetCheckResult(
        asset_key=key(stream), check_name="folded", passed=passed, metadata={"failure": words}
    )
    conflicts = outcome.conflicts if isinstance(outcome, Fold) else 0
    unique = dg.AssetCheckResult(
        asset_key=key(stream),
        check_name="keys_are_unique",
        passed=conflicts == 0,
        metadata={"records of one key with other content": conflicts},
    )
    metadata: dict[str, int | str] = {}
    if isinstance(outcome, Fold):
        metadata = {
            "dagster/row_count": outcome.rows,
            "rows read": outcome.read,
            "duplicates replaced": outcome.duplicates,
            "of them with other content": outcome.conflicts,
            "rows set aside in quarantine": outcome.quarantined,
            "manifest": outcome.manifest,
        }
    return dg.MaterializeResult(
        asset_key=key(stream), metadata=metadata, check_results=[folded, unique, described]
    )
