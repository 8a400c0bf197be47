"""Whatever nights there were: history is what a naive model says, and any replay gives the same."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines import run
from pipelines.settings import Settings
from pipelines.state import decisions
from pipelines.state.decisions import Decision, Kind
from pipelines.state.proof import Grade
from tests.run.nights import FIRST, Nights
from tests.warehouse.conftest import NOON
from tests.warehouse.history_model import Model, Night

KEYS = range(12)
VARIANTS: list[dict[str, Any]] = [
    {"n": 1, "t": "a"},
    {"n": 2, "t": "a"},
    {"n": 1, "t": "b", "l": [{"x": 1}]},
    {"n": 1.5, "t": "b", "l": [{"x": 1}, {"x": 2, "y": "z"}]},
    {"n": 1, "t": None, "o": {"b": 1, "a": "u"}},
    {"n": 1},
]


@dataclass(frozen=True)
class Plan:
    """One night: what is missing, what each key says, what cannot be read, and how it was read."""

    variants: dict[int, int] = field(default_factory=dict)
    missing: frozenset[int] = frozenset()
    aside: frozenset[int] = frozenset()
    stale: frozenset[int] = frozenset()
    grade: Grade = Grade.COMPLETE
    same_day: bool = False
    accepted: bool = False
    replayed: bool = False
    turned: bool = False

    def record(self, key: int, *, stale: bool = False) -> dict[str, Any]:
        variant = (self.variants.get(key, 0) + stale) % len(VARIANTS)
        return {"id": key} | VARIANTS[variant]

    def pages(self) -> list[str]:
        """Return the pages: first what was read again later and had changed by then."""
        there = [key for key in KEYS if key not in self.missing]
        stale = [self.record(key, stale=True) for key in there if key in self.stale]
        texts = [self._text(key) for key in there]
        return [json.dumps(stale), f"[{', '.join(texts)}]"]

    def _text(self, key: int) -> str:
        if key in self.aside:
            return f'{{"id": {key}, "n": NaN}}'
        record = self.record(key)
        return json.dumps(dict(reversed(record.items())) if self.turned else record)


some = st.frozensets(st.sampled_from(KEYS), max_size=2)
plans = st.builds(
    Plan,
    variants=st.dictionaries(st.sampled_from(KEYS), st.integers(0, 5), max_size=4),
    missing=some,
    aside=st.frozensets(st.sampled_from(KEYS), max_size=1),
    stale=st.frozensets(st.sampled_from(KEYS), max_size=1),
    grade=st.sampled_from([Grade.COMPLETE, Grade.SNAPSHOT, Grade.UNSTABLE_ORDER]),
    same_day=st.booleans(),
    accepted=st.booleans(),
    replayed=st.booleans(),
    turned=st.booleans(),
)
histories = st.lists(plans, min_size=2, max_size=6)


def lived(nights: Nights, model: Model, plan: Plan) -> None:
    """Read and fold one night; let the model do the same."""
    same_day = plan.same_day and nights.number > 0
    file = nights.read(*plan.pages(), grade=plan.grade, same_day=same_day)
    if plan.accepted:
        decision = Decision(Kind.DISAPPEARED, "default", "usage", file, "ann", NOON)
        decisions.decide(nights.session.ledger, decision)
    nights.fold()
    moment = datetime.combine(nights.day, NOON.timetz()) + timedelta(minutes=nights.number - 1)
    read = [plan.record(key) for key in KEYS if key not in plan.missing]
    aside = plan.aside - plan.missing
    whole = plan.grade.counts_missing
    model.fold(Night(moment, nights.day, read, aside, whole, plan.accepted))


def assert_equal(nights: Nights, model: Model) -> None:
    with nights.session.work.writing() as writer:
        there = writer.execute(
            "SELECT id, n, first_seen, changed_at, missing_since FROM current.usage ORDER BY id"
        ).fetchall()
        past = writer.execute(
            "SELECT id, n, first_seen, valid_from, valid_to, why FROM past.usage ORDER BY ALL"
        ).fetchall()
    assert there == [
        (
            key,
            each.record["n"],
            each.first_seen,
            each.valid_from,
            each.missing_since and each.missing_since[0],
        )
        for key, each in sorted(model.there.items())
    ]
    ended = [
        (
            each.record["id"],
            each.record["n"],
            each.first_seen,
            each.valid_from,
            each.valid_to,
            each.why,
        )
        for each in model.past
    ]
    assert past == sorted(ended, key=lambda each: (each[0], each[1], each[2], each[3]))


def check(history: list[Plan]) -> None:
    """Try a history in a home of its own."""
    with TemporaryDirectory() as folder:
        address = "http://127.0.0.1:9"
        own = Settings(
            home=Path(folder), base_url=address, auth_url=address, audience="a", client_id="c"
        )
        with run.open(own) as session:
            live(Nights(session), history)


def live(nights: Nights, history: list[Plan]) -> None:
    """Live through a history; compare each night with the model, and at the end with a replay."""
    model = Model()
    for plan in history:
        lived(nights, model, plan)
        assert_equal(nights, model)
        if plan.replayed:
            run.replay(nights.session, FIRST)
    before = nights.content()
    run.replay(nights.session, nights.day)
    assert nights.content() == before


@settings(max_examples=5)
@given(histories)
def test_history_is_what_the_nights_say_and_replays_change_nothing(history: list[Plan]) -> None:
    check(history)
    assert history


@pytest.mark.trial
@pytest.mark.timeout(900)
@settings(max_examples=20)
@given(histories)
def test_any_history(history: list[Plan]) -> None:
    check(history)
    assert history
