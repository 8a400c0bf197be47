"""Assets `current/<stream>`: the typed tables of what was read last, in the work database."""

from collections.abc import Iterator

import dagster as dg

from assets import archive, interface
from assets.partitions import PARTITIONS, parts
from assets.resources import Sync, connection
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
    """Fold what was read of the run's days; days that were published before are replayed."""
    outcomes: dict[str, list[Fold | PartnerSyncError]] = {}
    with sync.session(context) as session:
        of = {part: connection(session, part.connection) for part in parts(context)}
        mine = {part: opened(of[part], chosen(context, key)) for part in of}
        run_id = context.run.run_id
        orders = [Order(of[part], part.day, mine[part], run=run_id) for part in of]
        for (_connection, stream), outcome in run.fold_days(session, orders).items():
            outcomes.setdefault(stream, []).append(outcome)
        names = {part.connection for part in of}
        differences = [each for name in sorted(names) for each in run.differing(session, name)]
    for stream_name, its in outcomes.items():
        seen = [each for each in differences if each.stream == stream_name]
        yield _result(stream_name, its, interface.as_described(key(stream_name), seen))
    yield from foreign(context, key, outcomes)


def _result(
    stream: str, outcomes: list[Fold | PartnerSyncError], described: dg.AssetCheckResult
) -> dg.MaterializeResult[None]:
    folds = [each for each in outcomes if isinstance(each, Fold)]
    failures = [str(each) for each in outcomes if isinstance(each, PartnerSyncError)]
    folded = dg.AssetCheckResult(
        asset_key=key(stream),
        check_name="folded",
        passed=not failures,
        metadata={"failure": "; ".join(failures)},
    )
    conflicts = sum(each.conflicts for each in folds)
    unique = dg.AssetCheckResult(
        asset_key=key(stream),
        check_name="keys_are_unique",
        passed=conflicts == 0,
        metadata={"records of one key with other content": conflicts},
    )
    checks = [folded, unique, described]
    return dg.MaterializeResult(
        asset_key=key(stream), metadata=_metadata(folds), check_results=checks
    )


def _metadata(folds: list[Fold]) -> dict[str, int | str]:
    """Return what was folded, of all connections of the run together (as a rule it is one)."""
    if not folds:
        return {}
    return {
        "dagster/row_count": sum(each.rows for each in folds),
        "rows read": sum(each.read for each in folds),
        "duplicates replaced": sum(each.duplicates for each in folds),
        "of them with other content": sum(each.conflicts for each in folds),
        "rows set aside in quarantine": sum(each.quarantined for each in folds),
        "manifest": ", ".join(each.manifest for each in folds),
    }
