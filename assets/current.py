"""Assets `current/<stream>`: the typed tables of what was read last, in the work database."""

from collections.abc import Iterator

import dagster as dg

from assets import archive
from assets.partitions import PARTITIONS, parts
from assets.resources import Sync, connection
from assets.streams import STREAMS
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
        for check in ("folded", "keys_are_unique")
    ],
    can_subset=True,
    partitions_def=PARTITIONS,
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def fold(context: dg.AssetExecutionContext, sync: Sync) -> Iterator[dg.MaterializeResult[None]]:
    """Fold each selected stream's newest manifest; one that is folded already costs nothing."""
    selected = [stream for stream in STREAMS if key(stream.name) in context.selected_asset_keys]
    outcomes: dict[str, list[Fold | PartnerSyncError]] = {each.name: [] for each in selected}
    newest = {
        part.connection: part.day for part in sorted(parts(context), key=lambda each: each.day)
    }
    with sync.session(context) as session:
        for name, day in newest.items():
            of = connection(session, name)
            own = [stream for stream in selected if stream.surface == of.surface]
            folded = run.fold(session, Order(of, day, own, run=context.run.run_id))
            for stream in own:
                outcomes[stream.name].append(folded[stream.name])
    for each in outcomes.items():
        yield _result(*each)


def _result(stream: str, outcomes: list[Fold | PartnerSyncError]) -> dg.MaterializeResult[None]:
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
    return dg.MaterializeResult(
        asset_key=key(stream), metadata=_metadata(folds), check_results=[folded, unique]
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
