"""Assets `archive/<stream>`: what was read of each list on a day, page by page."""

from collections.abc import Iterator

import dagster as dg

from assets import interface
from assets.partitions import PARTITIONS, parts
from assets.resources import Sync, connection
from assets.streams import STREAMS, chosen, foreign, opened
from pipelines import run
from pipelines.errors import PartnerSyncError
from pipelines.run import Order
from pipelines.state.journal import ManifestRow


class Fetch(dg.Config):
    """How to read. `refetch`: read today's lists again, though they were read today already."""

    refetch: bool = False


def key(stream: str) -> dg.AssetKey:
    """Return the asset key of a stream's archive."""
    return dg.AssetKey(["archive", stream])


@dg.multi_asset(
    name="fetch",
    specs=[
        dg.AssetSpec(
            key(stream.name),
            description=stream.description,
            group_name="archive",
            kinds={"python", "http"},
            skippable=True,
        )
        for stream in STREAMS
    ],
    check_specs=[
        dg.AssetCheckSpec(check, asset=key(stream.name))
        for stream in STREAMS
        for check in ("read_to_its_end", interface.UNCHANGED)
    ],
    can_subset=True,
    partitions_def=PARTITIONS,
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def fetch(
    context: dg.AssetExecutionContext, config: Fetch, sync: Sync
) -> Iterator[dg.MaterializeResult[None]]:
    """Read the selected lists of each day, all streams side by side on one request budget.

    A stream that failed is reported by a failing check and does not stop the others; the last
    step of the run fails for it, after the others are published.
    """
    outcomes: dict[str, dict[str, ManifestRow | PartnerSyncError]] = {}
    with sync.session(context) as session:
        for part in parts(context):
            of = connection(session, part.connection)
            own = opened(of, chosen(context, key))
            order = Order(of, part.day, own, refetch=config.refetch, run=context.run.run_id)
            for stream, outcome in run.fetch(session, order).items():
                outcomes.setdefault(stream, {})[part.key] = outcome
        changes = {
            each: None
            for part in parts(context)
            for each in run.changed(session, part.connection, {part.day})
        }
    for stream, by_partition in outcomes.items():
        seen = [each for each in changes if each.stream == stream]
        yield _result(context, stream, by_partition, interface.unchanged(key(stream), seen))
    yield from foreign(context, key, outcomes)


def _result(
    context: dg.AssetExecutionContext,
    stream: str,
    outcomes: dict[str, ManifestRow | PartnerSyncError],
    unchanged: dg.AssetCheckResult,
) -> dg.MaterializeResult[None]:
    for partition, outcome in outcomes.items():
        context.add_asset_metadata(_metadata(outcome), key(stream), partition)
    failures = [str(each) for each in outcomes.values() if isinstance(each, PartnerSyncError)]
    for words in failures:
        context.log.warning(words)
    check = dg.AssetCheckResult(
        asset_key=key(stream),
        check_name="read_to_its_end",
        passed=not failures,
        metadata={"failures": failures},
    )
    return dg.MaterializeResult(asset_key=key(stream), check_results=[check, unchanged])


def _metadata(outcome: ManifestRow | PartnerSyncError) -> dict[str, dg.MetadataValue]:
    if isinstance(outcome, PartnerSyncError):
        return {"status": dg.MetadataValue.text(f"not read: {outcome}")}
    return {
        "status": dg.MetadataValue.text("read"),
        "dagster/partition_row_count": dg.MetadataValue.int(outcome.proof.rows),
        "proof": dg.MetadataValue.text(outcome.proof.sentence(outcome.stream)),
        "grade": dg.MetadataValue.text(outcome.proof.grade.words),
        "pages": dg.MetadataValue.int(outcome.pages),
        "manifest": dg.MetadataValue.text(outcome.file),
    }
