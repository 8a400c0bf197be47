"""Assets `archive/<stream>`: what was read of each list on a day, page by page."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import dagster as dg

from assets import interface
from assets.partitions import PARTITIONS, parts
from assets.resources import Sync, connection, night
from assets.streams import STREAMS, chosen, foreign, opened
from pipelines import run
from pipelines.errors import PartnerSyncError
from pipelines.state import runs
from pipelines.state.journal import ManifestRow
from pipelines.state.runs import Effort

Outcome = ManifestRow | PartnerSyncError


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
        for check in ("read_to_its_end", "proven", interface.UNCHANGED)
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
    outcomes: dict[str, dict[str, Outcome]] = {}
    with sync.session(context) as session:
        for part in parts(context):
            of = connection(session, part.connection)
            own = opened(of, chosen(context, key))
            order = replace(night(context.run, of, part.day), streams=own, refetch=config.refetch)
            for stream, outcome in run.fetch(session, order).items():
                outcomes.setdefault(stream, {})[part.key] = outcome
        efforts = runs.efforts(session.ledger, context.run.run_id)
        changes = {
            each: None
            for part in parts(context)
            for each in run.changed(session, part.connection, {part.day})
        }
    for stream, by_partition in outcomes.items():
        seen = [each for each in changes if each.stream == stream]
        checks = [
            interface.unchanged(key(stream), seen),
            _read_to_its_end(stream, by_partition.values()),
            _proven(stream, by_partition.values()),
        ]
        _tell(context, stream, by_partition, efforts.get(stream, Effort()))
        yield dg.MaterializeResult(asset_key=key(stream), check_results=checks)
    yield from foreign(context, key, outcomes)


def _read_to_its_end(stream: str, outcomes: Iterable[Outcome]) -> dg.AssetCheckResult:
    """Fail for every day that has no proven reading."""
    failures = [str(each) for each in outcomes if isinstance(each, PartnerSyncError)]
    return dg.AssetCheckResult(
        asset_key=key(stream),
        check_name="read_to_its_end",
        passed=not failures,
        metadata={"failures": failures},
    )


def _proven(stream: str, outcomes: Iterable[Outcome]) -> dg.AssetCheckResult:
    """Warn of readings whose order never kept still: they are folded, and nothing is missing."""
    proofs = [each.proof for each in outcomes if isinstance(each, ManifestRow)]
    return dg.AssetCheckResult(
        asset_key=key(stream),
        check_name="proven",
        passed=bool(proofs) and not any(proof.grade.marked for proof in proofs),
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"proofs": [proof.sentence(stream) for proof in proofs]},
    )


def _tell(
    context: dg.AssetExecutionContext, stream: str, outcomes: dict[str, Outcome], effort: Effort
) -> None:
    """Say of each day what was read; what that cost belongs to the last, as no other is fetched."""
    cost = {
        "requests": dg.MetadataValue.int(effort.requests),
        "429s": dg.MetadataValue.int(effort.refused),
        "seconds waited": dg.MetadataValue.float(round(effort.waited, 3)),
    }
    for partition, outcome in outcomes.items():
        own = cost if partition == max(outcomes) else {}
        context.add_asset_metadata(_metadata(outcome) | own, key(stream), partition)
        if isinstance(outcome, PartnerSyncError):
            context.log.warning(str(outcome))
        else:
            context.log.info(outcome.proof.sentence(stream))


def _metadata(outcome: Outcome) -> dict[str, dg.MetadataValue]:
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
