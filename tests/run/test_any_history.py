"""Whatever nights there were: history is what a naive model says, and any replay gives the same.

Two connections share a warehouse, one stream has a key and one has none; words about what is held
back come at once, late or never, and any days are replayed in between.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pipelines import run
from pipelines.run import Word
from pipelines.settings import Settings, StreamSettings
from pipelines.state.decisions import Kind
from pipelines.state.proof import Grade
from tests.run.nights import FIRST, Nights, Source
from tests.run.plans import KEYS, VARIANTS, Plan
from tests.run.witness import assert_equal
from tests.warehouse.history_model import Model, Night

SOURCES = (Source(), Source("second"), Source(stream="billing", key=None))
# Making an example smaller takes minutes, and the smaller one says little more.
AS_FOUND = (Phase.explicit, Phase.reuse, Phase.generate)
NOTHING: Mapping[str, StreamSettings] = {}
ADDRESS = "http://127.0.0.1:9"
TABLE = f"""
[{{name}}]
base_url = "{ADDRESS}"
auth_url = "{ADDRESS}"
audience = "a"
client_id = "c"
secret = "NO_SECRET"
"""

some = st.frozensets(st.sampled_from(KEYS), max_size=2)
plans = st.builds(
    Plan,
    source=st.sampled_from(SOURCES),
    variants=st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VARIANTS), max_size=4),
    missing=some,
    aside=some,
    stale=st.frozensets(st.sampled_from(KEYS), max_size=1),
    grade=st.sampled_from([Grade.COMPLETE, Grade.COMPLETE_BY_COUNT, Grade.PARTIAL]),
    same_day=st.booleans(),
    words=st.frozensets(st.sampled_from(SOURCES)),
    replayed=st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
    turned=st.booleans(),
)
histories = st.lists(plans, min_size=3, max_size=8)


@dataclass
class Lived:
    """A home, and what a witness knows of it: the readings of each source by their manifest."""

    nights: Nights
    read: dict[Source, dict[str, Night]] = field(default_factory=lambda: defaultdict(dict))

    def live(self, plan: Plan) -> None:
        """Read and fold one night, say the words that are due, replay; compare after each."""
        file = self.nights.read(
            *plan.pages(),
            of=plan.source,
            grade=plan.grade,
            same_day=plan.same_day and self.nights.number > 0,
        )
        self.read[plan.source][file] = plan.night(self.nights.moment)
        self.nights.fold(plan.source)
        self.compare()
        for source in sorted(plan.words, key=SOURCES.index):
            self.say(source)
            self.compare()
        if plan.replayed is not None:
            self.replay(*plan.replayed)

    def say(self, source: Source) -> None:
        """Accept what the newest reading of a source is held back for, if it is."""
        session, read = self.nights.session, self.read[source]
        word, about = (
            Word(source.stream, source.connection, "ann"),
            (source.connection, source.stream),
        )
        for kind in (Kind.QUARANTINE, Kind.DISAPPEARED):  # the one is asked before the other
            waiting = run.waiting(session, kind)
            if about in [(each.connection, each.stream) for each in waiting]:
                held, _ = run.accept_waiting(session, kind, word)
                was, sorry = read[held.manifest], kind is Kind.QUARANTINE
                read[held.manifest] = replace(
                    was, sorry=was.sorry or sorry, gone=was.gone or not sorry
                )

    def replay(self, begin: int, length: int) -> None:
        """Replay some of the days that were read; nothing may change."""
        before, days = self.nights.content(), (self.nights.day - FIRST).days
        first = FIRST + timedelta(days=min(begin, days))
        run.replay(self.nights.session, first, min(self.nights.day, first + timedelta(days=length)))
        assert self.nights.content() == before

    def compare(self) -> None:
        """Compare the tables with the witness."""
        with self.nights.session.work.writing() as writer:
            for source, read in self.read.items():
                assert_equal(writer, source, Model.of(read.values()))

    def end(self) -> None:
        """Build the tables anew in both ways that there are; nothing may change."""
        before = self.nights.content()
        run.replay(self.nights.session, self.nights.day)
        assert self.nights.content() == before
        (self.nights.session.settings.place.work / "warehouse.duckdb").unlink()
        self.nights.fold()
        assert self.nights.content() == before


@contextmanager
def home(folder: Path, streams: Mapping[str, StreamSettings] = NOTHING) -> Iterator[Nights]:
    """Open a home of two connections."""
    with run.open(Settings(home=folder, streams=dict(streams))) as session:
        file = session.settings.place.config / "connections.toml"
        file.write_text("".join(TABLE.format(name=name) for name in ("default", "second")))
        yield Nights(session)


def check(history: list[Plan]) -> None:
    """Live through a history in a home of its own."""
    with TemporaryDirectory() as folder, home(Path(folder)) as nights:
        lived = Lived(nights)
        for plan in history:
            lived.live(plan)
        lived.end()


@settings(max_examples=2, phases=AS_FOUND)
@given(histories)
def test_history_is_what_the_nights_say_and_replays_change_nothing(history: list[Plan]) -> None:
    check(history)
    assert history


@pytest.mark.trial
@pytest.mark.timeout(900)
@settings(max_examples=10, phases=AS_FOUND)
@given(histories)
def test_any_history(history: list[Plan]) -> None:
    check(history)
    assert history
