"""What is shown of a fold, and what a run says that it will do, on nights made up for it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest

from pipelines import run
from pipelines.clock import Clock
from pipelines.run import Intent, Order, Session
from pipelines.state.decisions import Kind
from tests.run.nights import FIRST, USAGE, Nights, Source
from tests.run.test_any_history import home

SECOND = Source("second")
TEN = str([{"id": each, "n": 1} for each in range(10)]).replace("'", '"')
NINE = str([{"id": each, "n": 1, "fee": 5} for each in range(9)]).replace("'", '"')
ONE = '[{"id": 1, "n": 1}]'


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[Nights]:
    """Live two nights of one connection and one of another."""
    with home(tmp_path / "home") as opened:
        opened.read(TEN)
        opened.fold()
        opened.read(ONE, of=SECOND)
        opened.fold(SECOND)
        opened.read(NINE)
        opened.fold()
        yield opened


def order(nights: Nights, day: date, of: Source = USAGE) -> Order:
    return replace(nights.order(of), day=day)


def test_each_day_is_shown_against_the_reading_before_it(nights: Nights) -> None:
    days = [nights.day - timedelta(days=2), nights.day - timedelta(days=1), nights.day]
    shown = run.evidence(nights.session, [order(nights, day) for day in days])["usage"]

    assert [(each.day, each.there, each.expected) for each in shown.landings] == [
        (days[0], 10, 10),
        (days[2], 9, 10),
    ]
    assert shown.landings[1].dropped == 0.1
    assert [each.words for each in shown.changes] == ["usage.fee is new (BIGINT)"]
    assert (shown.waiting, shown.differences, shown.required) == ((), (), None)


def test_tables_are_counted_and_no_value_is_shown(nights: Nights) -> None:
    shown = run.evidence(nights.session, [order(nights, nights.day)])["usage"]

    assert shown.current is not None
    assert shown.history is not None
    assert shown.current.rows == {"usage": 11}
    assert shown.history.rows == {"usage": 11 + 9}
    found = {each.name: (each.type, each.path, each.values) for each in shown.current.own}
    assert found["fee"] == ("BIGINT", "$.fee", 9)
    assert found["_page"] == ("VARCHAR", None, 11)
    assert shown.current.twice == 0
    assert {"valid_from", "valid_to", "why"} < {each.name for each in shown.history.own}


def test_a_key_twice_in_the_table_is_counted(nights: Nights) -> None:
    with nights.session.work.writing() as writer:
        writer.execute("INSERT INTO current.usage SELECT * FROM current.usage WHERE id < 3")
    shown = run.evidence(nights.session, [order(nights, nights.day)])["usage"]
    assert shown.current is not None
    assert shown.current.twice == 4  # 0, 1 and 2 of the one connection, 1 of the other


def test_who_waits_is_shown_to_the_connection_that_it_concerns(nights: Nights) -> None:
    nights.read(ONE)
    nights.fold()
    shown = [
        run.evidence(nights.session, [order(nights, nights.day, of)])["usage"]
        for of in (USAGE, SECOND)
    ]
    assert [each.count for each in shown[0].awaits(Kind.DISAPPEARED)] == [8]
    assert shown[0].landings == ()
    assert shown[1].waiting == ()


def at(session: Session, hour: int, day: date) -> Session:
    """Return the session at an hour of a day."""
    now = datetime.combine(day, time(hour), UTC)
    return replace(session, clock=Clock(now=lambda: now))


def intended(nights: Nights, given: Order, hour: int = 1) -> Intent:
    return run.intent(at(nights.session, hour, nights.day + timedelta(days=1)), given)


def test_what_was_read_is_replayed_and_costs_nothing(nights: Nights) -> None:
    found = intended(nights, order(nights, nights.day))
    assert found.words == "replay of usage from the archive, 0 requests; nothing is sent"
    assert found.does("usage") == f"replay of default/usage/{nights.day}.001.json, 0 requests"
    assert (found.requests, found.minutes) == (0, 0.0)


def test_a_day_that_is_over_and_was_not_read_stays_unread(nights: Nights) -> None:
    found = intended(nights, order(nights, FIRST - timedelta(days=9)))
    assert found.unread == ("usage",)
    assert found.words.startswith("nothing for usage: not read on that day, which is over")


@pytest.mark.parametrize(
    ("hour", "meets"), [(0, "it will be over by then"), (1, "it would still run then")]
)
def test_what_is_fetched_is_planned_against_the_next_night(
    nights: Nights, hour: int, meets: str
) -> None:
    """A window of an hour lets nothing be over by two."""
    today = order(nights, nights.day + timedelta(days=1))
    slow = nights.session.settings.model_copy(update={"window": 3600.0 * hour * 5})
    session = replace(nights.session, settings=slow)
    found = intended(replace(nights, session=session), today, hour)
    assert [each.name for each in found.fetched] == ["usage"]
    assert found.plan is not None
    assert found.requests == found.plan.requests + found.plan.tokens
    assert found.words.endswith(meets)
    assert f"about {found.requests:,} requests" in found.words


def test_an_order_to_read_again_fetches_what_is_there(nights: Nights) -> None:
    given = replace(order(nights, nights.day), refetch=True)
    session = at(nights.session, 23, nights.day)
    assert [each.name for each in run.intent(session, given).fetched] == ["usage"]
    assert run.intent(session, replace(given, refetch=False)).fetched == ()


def test_a_past_day_is_replayed_even_where_it_is_to_be_read_again(nights: Nights) -> None:
    given = replace(order(nights, nights.day), refetch=True)
    found = run.intent(at(nights.session, 13, nights.day + timedelta(days=1)), given)
    assert (found.fetched, found.unread) == ((), ())
    assert found.does("usage").startswith(f"replay of default/usage/{nights.day}.001.json")
