"""Breaks in the ledger: any history of sightings and acts leaves the state that the rules say."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from pipelines.state import breaks, erasure
from pipelines.state.breaks import Act, Finding, Kind, Reason, Standing, State
from tests import ledgers

NIGHT = datetime(2026, 11, 3, 1, tzinfo=UTC)
FINDING = Finding(
    "B00000000001",
    "amount_mismatch",
    "default",
    "p-17",
    date(2026, 10, 1),
    "EUR",
    "u-1",
    "",
    Decimal("112.40"),
    Decimal("100.00"),
    Decimal("-12.40"),
    2,
)
RULE = [FINDING.rule]
OWNED = Act(FINDING.break_id, Kind.ASSIGN, "ann", NIGHT, owner="bob")
ACCEPTED = Act(
    FINDING.break_id,
    Kind.RESOLVE,
    "ann",
    NIGHT,
    reason=Reason.ACCEPTED,
    note="agreed with them",
    amount=FINDING.difference,
    rows=2,
)


def night(number: int) -> datetime:
    return NIGHT + timedelta(days=number)


def only(ledger: Engine) -> Standing:
    (found,) = breaks.standing(ledger)
    return found


def test_a_break_keeps_its_first_night_and_every_digit(ledger: Engine) -> None:
    later = replace(FINDING, difference=Decimal("12345678901234567890.1234"), month=None)
    for moment, found in ((night(0), FINDING), (night(1), later), (night(1), later)):
        breaks.sight(ledger, [found], moment, RULE)
    seen = only(ledger)
    assert (seen.first_seen, seen.last_seen, seen.gone_at) == (night(0), night(1), None)
    assert (seen.finding, seen.state, seen.owner) == (later, State.OPEN, "")
    breaks.sight(ledger, [], night(2), ["another_rule"])
    assert only(ledger) == seen


def test_what_is_gone_is_resolved_by_evidence_and_open_when_it_returns(ledger: Engine) -> None:
    breaks.sight(ledger, [FINDING], night(0), RULE)
    breaks.act(ledger, ACCEPTED)
    assert (only(ledger).state, only(ledger).resolved_by) == (State.RESOLVED, "ann")
    assert only(ledger).note == "accepted: agreed with them"
    for _twice in range(2):
        breaks.sight(ledger, [], night(1), RULE)
        gone = only(ledger)
        assert (gone.state, gone.resolved_by, gone.gone_at) == (
            State.RESOLVED,
            "evidence",
            night(1),
        )
    breaks.sight(ledger, [FINDING], night(2), RULE)
    returned = only(ledger)
    assert (returned.state, returned.resolved_by, returned.first_seen) == (
        State.OPEN,
        "",
        night(0),
    )


def test_a_resolution_by_hand_holds_for_the_difference_that_it_was_made_for(
    ledger: Engine,
) -> None:
    breaks.sight(ledger, [FINDING], night(0), RULE)
    breaks.act(ledger, ACCEPTED)
    same = replace(FINDING, difference=Decimal("-12.4000"), rows=9)
    breaks.sight(ledger, [same], night(1), RULE)
    assert only(ledger).state is State.RESOLVED
    breaks.sight(ledger, [replace(FINDING, difference=Decimal("-12.41"))], night(2), RULE)
    assert (only(ledger).state, only(ledger).resolved_by) == (State.OPEN, "")


def test_without_amounts_the_rows_are_what_was_accepted(ledger: Engine) -> None:
    nameless = replace(FINDING, difference=None, used_amount=None, billed_amount=None)
    breaks.sight(ledger, [nameless], night(0), RULE)
    breaks.act(ledger, replace(ACCEPTED, amount=None))
    assert only(ledger).state is State.RESOLVED
    breaks.sight(ledger, [replace(nameless, rows=3)], night(1), RULE)
    assert only(ledger).state is State.OPEN


def test_the_digest_is_of_what_people_did(ledger: Engine) -> None:
    before = breaks.digest(ledger)
    breaks.sight(ledger, [FINDING], night(0), RULE)
    assert breaks.digest(ledger) == before
    breaks.act(ledger, OWNED)
    assert breaks.digest(ledger) != before
    assert breaks.acts(ledger, FINDING.break_id) == [OWNED]
    assert breaks.acts(ledger, "B0") == []


def test_an_erased_partner_is_not_quoted(ledger: Engine) -> None:
    breaks.sight(ledger, [FINDING], night(0), RULE)
    breaks.act(ledger, replace(OWNED, note="p-17 answers on Monday"))
    assert erasure.erase(ledger, "p-17") == ["breaks.partner", "break_acts.note"]
    assert only(ledger).finding == replace(FINDING, partner="[erased]")


def test_many_breaks_take_little(ledger: Engine) -> None:
    many = [replace(FINDING, break_id=f"B{number:012x}") for number in range(5_000)]
    breaks.sight(ledger, many, night(0), RULE)
    begun = time.process_time()
    breaks.sight(ledger, many[:-5], night(1), RULE)
    stand = breaks.standing(ledger)
    assert time.process_time() - begun < 2
    assert [each.state for each in stand].count(State.RESOLVED) == 5


# What may happen to one break: a night (found with so many cents, or not), or an act.
EVENT = st.one_of(st.none(), st.integers(1, 2), st.sampled_from(Kind))


@dataclass
class Model:
    """The rules in other words: a break remembers its owner, and one decision at most."""

    amount: int = 0
    found: bool = True
    owner: str = ""
    decided: Kind | None = None
    at_amount: int = 0

    def happen(self, event: int | Kind | None) -> None:
        if isinstance(event, Kind):
            self.owner = "bob" if event is Kind.ASSIGN else self.owner
            self.decided, self.at_amount = event, self.amount
            return
        if event is not None and not self.found:
            self.decided = None
        self.found, self.amount = event is not None, event or self.amount

    @property
    def state(self) -> State:
        if not self.found:
            return State.RESOLVED
        if self.decided is Kind.RESOLVE and self.amount == self.at_amount:
            return State.RESOLVED
        if self.decided is Kind.PEND:
            return State.PENDING
        return State.ASSIGNED if self.owner else State.OPEN


@contextmanager
def another() -> Iterator[Engine]:
    with TemporaryDirectory() as folder:
        ledger = ledgers.opened(Path(folder))
        yield ledger
        ledger.dispose()


def happened(ledger: Engine, event: int | Kind | None, moment: datetime) -> None:
    """Let a night find the break twice, or not, or a person do something."""
    if isinstance(event, Kind):
        seen = breaks.sighted(ledger, FINDING.break_id)
        assert seen is not None
        owner = "bob" if event is Kind.ASSIGN else ""
        done = Act(FINDING.break_id, event, "ann", moment, owner=owner)
        breaks.act(ledger, breaks.as_it_is(done, seen))
        return
    found = [replace(FINDING, difference=Decimal(event) / 100)] if event else []
    for _twice in range(2):
        breaks.sight(ledger, found, moment, RULE)


@settings(max_examples=40)
@given(st.lists(EVENT, max_size=8))
def test_any_history_leaves_the_state_of_the_model(history: list[int | Kind | None]) -> None:
    with another() as ledger:
        model = Model()
        for number, event in enumerate([1, *history]):
            happened(ledger, event, night(number))
            model.happen(event)
            assert only(ledger).state is model.state
            assert only(ledger).first_seen == night(0)
