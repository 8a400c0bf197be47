"""Assets `archive/<stream>`: what was read of each list on a day, page by page."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import dagster as dg
from pydantic import Field

from assets import catalog, intents, interface
from assets.checks import MOST, NO_REPEATS, PROVEN, READ, UNCHANGED, Numbers
from assets.executor import FETCH
from assets.partitions import PARTITIONS, parts
from assets.previews import cost
from assets.resources import Sync, connection, night, there
from assets.streams import STREAMS, chosen, foreign, opened
from pipelines import run
from pipelines.errors import PartnerSyncError
from pipelines.run import Intent, Order, Session
from pipelines.state import runs
from pipelines.state.descriptions import SeenChange
from pipelines.state.journal import ManifestRow
from pipelines.state.proof import Proof
from pipelines.state.runs import Effort

Outcome = ManifestRow | PartnerSyncError
Metadata = dict[str, dg.MetadataValue]


class Fetch(dg.Config):
    """How to read; the dialog that launches a run shows it under Config."""

    refetch: bool = Field(
        default=False,
        description="Read today's lists again, though they were read today already.",
    )


def key(stream: str) -> dg.AssetKey:
    """Return the asset key of a stream's archive."""
    return catalog.key("archive", stream)


@dg.multi_asset(
    name="fetch",
    specs=[catalog.of_stream("archive", stream, {"python", "http"}) for stream in STREAMS],
    check_specs=[
        check.spec(key(stream.name))
        for stream in STREAMS
        for check in (READ, PROVEN, NO_REPEATS, UNCHANGED)
    ],
    can_subset=True,
    partitions_def=PARTITIONS,
    backfill_policy=dg.BackfillPolicy.single_run(),
    op_tags=FETCH,
)
def fetch(
    context: dg.AssetExecutionContext, config: Fetch, sync: Sync
) -> Iterator[dg.MaterializeResult[None]]:
    """Read the selected lists of each day, all streams side by side on one request budget.

    What will be done is said before anything is sent. A stream that failed is reported by a failing
    check and does not stop the others; the last step of the run fails for it, after the others are
    published.
    """
    outcomes: dict[str, dict[str, Outcome]] = {}
    with sync.session(context) as session:
        orders = _orders(context, session, refetch=config.refetch)
        planned = {partition: run.intent(session, order) for partition, order in orders.items()}
        intents.tell(context, planned)
        for partition, order in orders.items():
            for stream, outcome in run.fetch(session, order).items():
                outcomes.setdefault(stream, {})[partition] = outcome
        there(context, session, (each for days in outcomes.values() for each in days.values()))
        efforts = runs.efforts(session.ledger, context.run.run_id)
        changes = {
            each: None
            for order in orders.values()
            for each in run.changed(session, order.connection.name, {order.day})
        }
        home = session.settings.place.archive
    for stream, by_partition in outcomes.items():
        days = {each: _metadata(outcome, home) for each, outcome in by_partition.items()}
        days[max(days)] |= cost([efforts.get(stream, Effort())])  # no other day is fetched
        _tell(context, stream, days, planned)
        yield _result(stream, by_partition.values(), changes)
    yield from foreign(context, key, outcomes)


def _orders(
    context: dg.AssetExecutionContext, session: Session, *, refetch: bool
) -> dict[str, Order]:
    """Return what is to be read under each partition."""
    orders: dict[str, Order] = {}
    for part in parts(context):
        of = connection(session, part.connection)
        own = opened(of, chosen(context, key))
        order = night(context.run, of, part.day)
        orders[part.key] = replace(order, streams=own, refetch=refetch)
    return orders


def _result(
    stream: str, outcomes: Collection[Outcome], changes: Iterable[SeenChange]
) -> dg.MaterializeResult[None]:
    seen = [each for each in changes if each.stream == stream]
    checks = [
        interface.unchanged(key(stream), seen),
        _read_to_its_end(stream, outcomes),
        proven(stream, outcomes),
        no_repeats(stream, outcomes),
    ]
    return dg.MaterializeResult(
        asset_key=key(stream), metadata=_rows(outcomes), check_results=checks
    )


def _read_to_its_end(stream: str, outcomes: Iterable[Outcome]) -> dg.AssetCheckResult:
    """Fail for every day that has no proven reading."""
    every = list(outcomes)
    failures = [str(each) for each in every if isinstance(each, PartnerSyncError)]
    numbers: Numbers = {
        "days asked for": len(every),
        "days not read": len(failures),
        "failures": failures[:MOST],
    }
    return READ.result(key(stream), numbers, passed=not failures)


def proven(stream: str, outcomes: Iterable[Outcome]) -> dg.AssetCheckResult:
    """Warn of readings that are not proven complete: loaded, and nothing counts as missing."""
    proofs = _proofs(outcomes)
    partial = [proof for proof in proofs if not proof.grade.counts_missing]
    counts: Numbers = {} if not partial else {"distinct rows seen": partial[-1].rows}
    if partial and partial[-1].places is not None:
        counts = {**counts, "places of the list": partial[-1].places}
    numbers: Numbers = {
        "readings": len(proofs),
        "readings that are not proven complete": len(partial),
        **counts,
        "changes of order": sum(proof.inversions for proof in proofs),
        "repairs": sum(proof.repairs for proof in proofs),
        "proofs": [proof.sentence(stream) for proof in proofs][:MOST],
    }
    return PROVEN.result(key(stream), numbers, passed=bool(proofs) and not partial)


def no_repeats(stream: str, outcomes: Iterable[Outcome]) -> dg.AssetCheckResult:
    """Warn of rows that the list contains again under the same key."""
    proofs = _proofs(outcomes)
    repeated = [proof for proof in proofs if proof.repeats]
    numbers: Numbers = {
        "stream": stream,
        "repeated rows": sum(proof.repeats for proof in repeated),
        "readings with repeated rows": len(repeated),
        "proofs": [proof.sentence(stream) for proof in repeated][:MOST],
    }
    return NO_REPEATS.result(key(stream), numbers, passed=not repeated)


def _proofs(outcomes: Iterable[Outcome]) -> list[Proof]:
    return [each.proof for each in outcomes if isinstance(each, ManifestRow)]


def _tell(
    context: dg.AssetExecutionContext,
    stream: str,
    days: Mapping[str, Metadata],
    planned: Mapping[str, Intent],
) -> None:
    """Say of each day what was planned, what was read, and what that cost."""
    for partition, own in days.items():
        plan = intents.of_stream(planned[partition], stream)
        context.add_asset_metadata(plan | own, key(stream), partition)
        said = own.get("proof") or own["status"]
        told = context.log.info if "proof" in own else context.log.warning
        told(f"{partition}: {said.value}")


def _rows(outcomes: Iterable[Outcome]) -> Metadata:
    """Return the rows of the newest day that was read."""
    read = [each for each in outcomes if isinstance(each, ManifestRow)]
    return {"dagster/row_count": dg.MetadataValue.int(read[-1].proof.rows)} if read else {}


def _metadata(outcome: Outcome, archive: Path) -> Metadata:
    """Return what one day's reading was; Dagster plots the numbers."""
    if isinstance(outcome, PartnerSyncError):
        return {"status": dg.MetadataValue.text(f"not read: {outcome}")}
    proof = outcome.proof
    took = (proof.ended_at - proof.begun_at).total_seconds() / 60
    return {
        "status": dg.MetadataValue.text("read"),
        "dagster/partition_row_count": dg.MetadataValue.int(proof.rows),
        "rows": dg.MetadataValue.int(proof.rows),
        "repeated rows": dg.MetadataValue.int(proof.repeats),
        "minutes": dg.MetadataValue.float(round(took, 3)),
        "proof": dg.MetadataValue.text(proof.sentence(outcome.stream)),
        "grade": dg.MetadataValue.text(proof.grade.words),
        "pages": dg.MetadataValue.int(outcome.pages),
        "manifest": dg.MetadataValue.text(outcome.file),
        "file": dg.MetadataValue.path(archive / "manifests" / outcome.file),
    }
