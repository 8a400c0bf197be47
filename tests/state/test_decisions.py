"""Decisions: kept as made, in order, apart by kind, connection and stream."""

from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import Engine

from pipelines.state import decisions
from pipelines.state.decisions import Decision, Kind

AT = datetime(2026, 11, 3, 8, tzinfo=UTC)
FIRST = Decision(
    Kind.DISAPPEARED, "default", "usage", "default/usage/2026-11-03.001.json", "ada", AT
)


def test_decisions_are_kept_in_order_and_apart(ledger: Engine) -> None:
    later = replace(FIRST, by="bob", note="they moved to another distributor")
    others = [
        replace(FIRST, kind=Kind.SCHEMA),
        replace(FIRST, connection="acme"),
        replace(FIRST, stream="billing"),
    ]
    for each in (FIRST, *others, later):
        decisions.decide(ledger, each)

    assert decisions.made(ledger, Kind.DISAPPEARED, "default", "usage") == [FIRST, later]
    assert decisions.made(ledger, Kind.ERASED, "default", "usage") == []
