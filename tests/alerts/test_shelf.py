"""Every alert: what raises it, in which words, and that a home in order raises none."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from pipelines.alerts import ALERTS, Alert
from pipelines.state import descriptions, runs
from pipelines.state.decisions import Kind
from pipelines.state.descriptions import Seen, SeenChange
from pipelines.state.proof import Grade, Proof
from pipelines.state.runs import Call
from pipelines.warehouse import awaiting
from pipelines.warehouse.awaiting import Awaiting
from pipelines.warehouse.meta import Fold, prepare, record
from tests.alerts.conftest import NOON, House

NAMES = {
    *("failed_run", "foreign_use", "held_back", "interface_change", "mass_disappearance"),
    *("quarantine", "stale_data", "unproven_stream"),
}
PROOF = Proof(Grade.NOT_PROVEN, 5, 9, 0, 1, 0, "id", False, NOON, NOON, reason="no end")
Cause = Callable[[House], None]


def in_order(house: House) -> None:
    """Read and publish everything a minute ago."""
    house.later(minutes=-1)
    house.ran("good", "published")
    for stream in ("billing", "partners", "usage"):
        house.read(stream)
    house.later(minutes=1)


def failed(house: House) -> None:
    house.failed("billing", "billing: 403 on /v2/billing: scope missing")
    house.ran("bad", "partial", NOON + timedelta(hours=1))


def stale(house: House) -> None:
    house.later(hours=37)
    house.read("usage")
    house.read("partners", Grade.COMPLETE_BY_COUNT)


def partial(house: House) -> None:
    house.read("usage", Grade.PARTIAL)


def unstable(house: House) -> None:
    """Read it with a release before 0.2."""
    house.read("usage", Grade.UNSTABLE_ORDER)


def refused_by_old_release(house: House) -> None:
    house.failed("usage", PROOF.sentence("usage"), PROOF)


def changed(house: House) -> None:
    seen = Seen("default", 2, b"{}", "", NOON, NOON)
    news = [
        SeenChange("default", "usage", "/v2/usage", what, "string", "", meaning, NOON)
        for what, meaning in (("field a", "breaking"), ("field b", "safe"))
    ]
    descriptions.add(house.session.ledger, seen, news)


def waits(kind: Kind) -> Cause:
    def cause(house: House) -> None:
        held = Awaiting(kind, "default", "usage", "usage.json", NOON.date(), 70, "70 of 90 gone.")
        with house.session.work.writing() as writer:
            awaiting.note(writer, held)

    return cause


def set_aside(house: House) -> None:
    counts = {"read": 9, "quarantined": 2, "rows": 7, "added": 7}
    others = ("duplicates", "conflicts", "changed", "restated", "gone", "missing")
    grade = Grade.COMPLETE.value
    made = Fold(
        number=1,
        run="run",
        connection="default",
        stream="usage",
        manifest="usage.json",
        day=NOON.date(),
        grade=grade,
        ended_at=NOON,
        folded_at=NOON,
        **counts,
        **dict.fromkeys(others, 0),
    )
    with house.session.work.writing() as writer:
        prepare(writer)
        record(writer, made)


def refused(house: House) -> None:
    call = Call("usage", "GET", "/v2/usage", "", NOON, 0, 0, 429, 0, None, None)
    for _ in range(3):
        runs.record(house.session.ledger, "good", call)


def counted(house: House) -> None:
    at = NOON.timestamp()
    columns = "learned_at, blocked_until, blocked_to, gap, hold, ease_at, incident_at, sent_at"
    columns += ", turn, nightly, adhoc, reserve, reserve_at, peak, peak_at"
    zeros = ", ".join("0" * 15)
    with house.session.ledger.begin() as ledger:
        ledger.exec_driver_sql(
            f"INSERT INTO budgets (actor, boot, foreign_uses, foreign_at, {columns}) "
            f"VALUES ('partner 7', '', 4, {at}, {zeros})"
        )


CAUSES: list[tuple[Cause, str, str, str]] = [
    (failed, "failed_run", "default", "ended as partial. billing: 403 on /v2/billing: scope mis"),
    (stale, "stale_data", "default/billing", "ended 2026-11-21 11:59 UTC, 37 hours ago."),
    (partial, "unproven_stream", "default/usage", "usage: PARTIAL. 5 distinct rows seen"),
    (unstable, "unproven_stream", "default/usage", "usage: UNSTABLE ORDER. 5 rows, 1 request."),
    (refused_by_old_release, "unproven_stream", "default/usage", "9 requests. No end. The rows"),
    (changed, "interface_change", "default", "breaking: /v2/usage field a: string -> nothing"),
    (waits(Kind.DISAPPEARED), "mass_disappearance", "default/usage", "disappeared accept usage"),
    (waits(Kind.SCHEMA), "held_back", "default/usage", "`partner-sync schema accept usage"),
    (waits(Kind.QUARANTINE), "held_back", "default/usage", "`partner-sync quarantine accept usa"),
    (set_aside, "quarantine", "default/usage", "2 of 9 rows of usage are set aside"),
    (refused, "foreign_use", "default", "3 requests of default were answered 429"),
    (counted, "foreign_use", "partner 7", "4 answers counted more requests of partner 7"),
]


@pytest.mark.parametrize(("cause", "name", "about", "words"), CAUSES)
def test_each_cause_raises_its_alert_alone(
    house: House, cause: Cause, name: str, about: str, words: str
) -> None:
    in_order(house)
    cause(house)
    assert house.alert() == [(name, about)]
    (line,) = house.said
    assert words in line
    heading = name.replace("_", " ").capitalize()
    assert line.startswith(f"{heading} ({about}): ")
    assert line.endswith(f"(docs/runbook.md, {heading})")


def test_a_home_in_order_and_an_empty_one_raise_none(house: House) -> None:
    assert house.alert() == []
    in_order(house)
    assert house.alert() == []
    assert house.said == []


def test_every_alert_has_a_cause_here() -> None:
    assert {name for _cause, name, _about, _words in CAUSES} == NAMES
    assert {alert.name for alert in ALERTS} == NAMES


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_says_what_it_means(alert: Alert) -> None:
    assert alert.means.endswith(".")
    assert replace(alert, name="other_name").heading == "Other name"


def test_a_partial_reading_every_night_makes_the_data_stale(house: House) -> None:
    in_order(house)
    house.later(hours=37)
    for stream in ("billing", "partners"):
        house.read(stream)
    house.read("usage", Grade.PARTIAL)
    keys = {("stale_data", "default/usage"), ("unproven_stream", "default/usage")}
    assert set(house.alert()) == keys


def test_the_alert_clears_when_the_next_reading_is_proven_by_count(house: House) -> None:
    in_order(house)
    house.read("usage", Grade.PARTIAL)
    assert house.alert() == [("unproven_stream", "default/usage")]
    house.later(minutes=1)
    house.read("usage", Grade.COMPLETE_BY_COUNT)
    assert house.alert() == []


def test_what_is_read_and_never_published_is_a_failed_run(house: House) -> None:
    in_order(house)
    house.later(hours=1)
    file = house.read("usage", published=False)
    assert house.alert() == [("failed_run", "default")]
    assert f"usage: {file} is read and not published." in house.said[0]
