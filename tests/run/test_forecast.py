"""What a plan says of a list that is counted, because its order changes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipelines import run
from pipelines.clock import Clock
from pipelines.run import Choice, Session
from pipelines.state import journal
from pipelines.state.journal import ManifestRow, Reading
from pipelines.state.proof import Grade, Proof
from tests.run.test_any_history import home

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
PROOF = Proof(Grade.COMPLETE, 6000, 14, 0, 1, 0, "id", False, NOON, NOON)
COUNTED = replace(
    PROOF, grade=Grade.COMPLETE_BY_COUNT, requests=64, places=6000, counted_at=NOON, chains=5
)
PARTIAL = replace(COUNTED, grade=Grade.PARTIAL, rows=5987, requests=325, not_seen=13)
NOTE = "usage is counted, because its order changes"
TWICE = 2 * 14  # pages of 500 that overlap by 5, and the head once more


def read(session: Session, proof: Proof) -> Session:
    """Record a reading of usage; return the session a day later."""
    reading = Reading("run", "default", "usage", NOON.date())
    scan = journal.begin(session.ledger, reading, NOON)
    row = ManifestRow(
        "default", "usage", NOON.date(), 1, scan, "usage.json", 1, proof.rows, proof, NOON
    )
    journal.add_manifest(session.ledger, row)
    return replace(session, clock=Clock(now=lambda: NOON + timedelta(days=1)))


COSTS = [
    (PROOF, None, 14, ()),
    (COUNTED, None, 64, (NOTE,)),
    (PARTIAL, None, 325, ("usage is counted, and PARTIAL last time",)),
    (replace(COUNTED, requests=20), None, TWICE, (NOTE,)),
    # The limit of the sandbox, 5 requests a second, for a minute.
    (PARTIAL, 1, 300, ("usage is counted, and PARTIAL last time",)),
    # Of a release before 0.2, which did not count.
    (replace(PROOF, grade=Grade.UNSTABLE_ORDER, requests=70), None, 70, (NOTE,)),
]


@pytest.mark.parametrize(("proof", "minutes", "requests", "notes"), COSTS)
def test_a_list_that_is_counted_costs_what_its_last_count_did(
    tmp_path: Path, proof: Proof, minutes: int | None, requests: int, notes: tuple[str, ...]
) -> None:
    with home(tmp_path / "home") as nights:
        session = read(nights.session, proof)
        update = {"sync_max_minutes": minutes}
        session = replace(session, settings=session.settings.model_copy(update=update))
        orders = run.orders(session, Choice(("default",), ("usage",)))
        planned = run.plan(session, orders)
        assert (planned.streams[0].requests, planned.notes) == (requests, notes)
        intent = run.intent(session, orders[0])
        assert all(note in intent.words for note in notes)
        said = f" ({planned.streams[0].note})" if notes else ""
        assert intent.does("usage") == f"fetch, about {requests:,} requests{said}"
