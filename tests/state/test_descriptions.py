"""Descriptions in the ledger: the first to see a new one records it, with what changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine

from pipelines.state import descriptions
from pipelines.state.descriptions import Difference, Seen, SeenChange

NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)
SEEN = Seen("default", 1, b"{}", "/", NOW, NOW)
CHANGE = SeenChange("default", "usage", "/v2/usage", "field a", "", "string", "safe", NOW)
DIFFERENCE = Difference("default", "usage", "a", "never came", "string", "", "m.json", NOW)


def test_nothing_was_seen(ledger: Engine) -> None:
    assert descriptions.latest(ledger, "default") is None
    assert descriptions.changes(ledger) == ()
    assert descriptions.differences(ledger) == ()


def test_the_same_description_again_keeps_its_newer_texts(ledger: Engine) -> None:
    descriptions.add(ledger, SEEN, [])
    later = replace(SEEN, body=b'{"a": 1}', last_seen_at=NOW + timedelta(days=1))
    descriptions.again(ledger, later)
    assert descriptions.latest(ledger, "default") == later
    assert descriptions.latest(ledger, "other") is None


def test_what_changed_is_recorded_once_by_whoever_sees_it_first(ledger: Engine) -> None:
    descriptions.add(ledger, SEEN, [])
    second = replace(SEEN, number=2, body=b"[]")
    for _process in range(2):
        descriptions.add(ledger, second, [CHANGE, replace(CHANGE, what="field b")])
    assert descriptions.latest(ledger, "default") == second
    assert [each.what for each in descriptions.changes(ledger)] == ["field a", "field b"]
    assert descriptions.changes(ledger, "other") == ()
    assert str(CHANGE) == "safe: /v2/usage field a: nothing -> string"


def test_differences_are_those_of_the_last_reading(ledger: Engine) -> None:
    other = replace(DIFFERENCE, stream="billing")
    descriptions.differ(ledger, "default", "usage", [DIFFERENCE, replace(DIFFERENCE, field="b")])
    descriptions.differ(ledger, "default", "billing", [other])
    descriptions.differ(ledger, "default", "usage", [DIFFERENCE])
    assert descriptions.differences(ledger, "default") == (other, DIFFERENCE)
    descriptions.differ(ledger, "default", "usage", [])
    assert descriptions.differences(ledger) == (other,)
    assert str(DIFFERENCE) == "a never came (described: string)"
