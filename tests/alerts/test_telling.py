"""Alerts are told once, again after a day or when they change, and when they are over."""

from pathlib import Path

import filelock
import pytest

from pipelines import run
from pipelines.run import alerting
from pipelines.settings import load
from pipelines.state.proof import Grade
from tests.alerts.conftest import NOON, House
from tests.alerts.receiving import Hook
from tests.alerts.test_shelf import changed, in_order, set_aside

Hooked = tuple[House, Hook]


def test_a_failed_run_is_told_once_then_daily_then_when_it_is_over(hooked: Hooked) -> None:
    house, hook = hooked
    in_order(house)
    house.later(hours=1)
    house.failed("usage", "no way there")
    house.ran("bad", "partial")
    for _ in range(3):
        assert house.alert() == [("failed_run", "default")]
    assert hook.titles() == [{"failed_run"}]
    assert len(house.said) == 1
    (posted,) = hook.bodies[0]["alerts"]
    assert set(posted) == {"alert", "title", "about", "happened", "means", "do", "runbook"}
    assert posted["runbook"] == "docs/runbook.md#failed-run"

    house.later(hours=23)
    house.alert()
    assert len(hook.bodies) == 1
    house.later(hours=1)
    house.alert()
    assert len(hook.bodies) == 2

    house.failed("billing", "no way there either")  # materially another matter
    house.alert()
    assert len(hook.bodies) == 3

    house.later(minutes=1)
    for stream in ("usage", "billing"):
        house.read(stream)
    house.ran("good again", "published")
    assert ("failed_run", "default") not in house.alert()
    assert hook.titles("over")[-1] == {"failed_run"}
    assert hook.bodies[-1]["over"][0]["since"] == "2026-11-21T13:00:00+00:00"
    assert "Over: Failed run (default), told since 2026-11-21 13:00 UTC" in house.said
    count = len(hook.bodies)
    house.alert()
    assert len(hook.bodies) == count


def test_a_target_that_fails_is_said_and_tried_again(hooked: Hooked) -> None:
    house, hook = hooked
    in_order(house)
    house.read("usage", Grade.PARTIAL)
    hook.status = 503
    house.alert()
    words = "alerts: webhook was not told: it answered 503. It is tried again the next time."
    assert house.said[-1] == words
    hook.status = 204
    house.alert()
    assert hook.titles() == [{"unproven_stream"}]
    hook.status = 500
    house.read("usage")
    house.alert()
    hook.status = 204
    house.alert()
    assert hook.titles("over") == [set(), {"unproven_stream"}]
    assert [each for each in house.said if each.startswith("Over")] == [
        "Over: Unproven stream (default/usage), told since 2026-11-21 12:00 UTC"
    ]


def test_while_a_run_is_under_way_nobody_says_that_a_failed_one_is_over(house: House) -> None:
    in_order(house)
    house.failed("usage", "no way there")
    house.ran("bad", "failed")
    assert house.alert() == [("failed_run", "default")]
    house.later(hours=1)
    house.ran("next", None)
    assert house.alert() == []
    assert len(house.said) == 1
    house.later(hours=25)  # it was killed
    assert house.alert() == [("failed_run", "default")]
    run.fail(house.session, "next")
    assert "ended as failed" in house.said[-1]


def test_what_the_tables_know_stands_while_another_run_has_them(house: House) -> None:
    in_order(house)
    set_aside(house)
    assert house.alert() == [("quarantine", "default/usage")]
    lock = house.session.settings.place.state / "warehouse.lock"
    with filelock.FileLock(lock):
        assert house.alert() == []
    assert len(house.said) == 1


def test_an_event_is_told_once_and_is_never_over(house: House) -> None:
    in_order(house)
    changed(house)
    house.alert()
    house.later(hours=25)
    assert house.alert() == [("interface_change", "default")]
    house.later(days=7)
    house.alert()
    assert [each for each in house.said if "Interface change" in each] == house.said[:1]


def test_alerts_never_fail_a_run_and_are_told_where_it_fails(house: House) -> None:
    in_order(house)
    house.read("usage", Grade.PARTIAL)
    with pytest.raises(ZeroDivisionError), run.alerted(house.session):
        raise ZeroDivisionError
    assert len(house.said) == 1
    with run.alerted(house.session):
        pass
    assert len(house.said) == 1


def test_status_shows_what_stands_and_tells_nobody(hooked: Hooked) -> None:
    house, hook = hooked
    in_order(house)
    house.read("usage", Grade.PARTIAL)
    (before,) = alerting.stands(house.session)
    assert (before.standing.key, before.since) == (("unproven_stream", "default/usage"), None)
    assert hook.bodies == []
    house.alert()
    (after,) = alerting.stands(house.session)
    assert after.since == NOON


def test_a_webhook_that_is_not_set_is_said_without_what_it_holds(
    environment: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del environment, tmp_path
    monkeypatch.setenv("OPS_HOOK", "http://canary-77.example/hook")
    monkeypatch.setenv("PARTNER_SYNC_WEBHOOK", '{"url": "OPS_HOOK"}')
    with run.open(load()) as session:
        tried = run.try_targets(session)
    assert [(each.target, bool(each.error)) for each in tried] == [
        ("log", False),
        ("webhook", True),
    ]
    assert "what OPS_HOOK holds is no https address" in tried[1].error
    assert "canary-77" not in tried[1].error
