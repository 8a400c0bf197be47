"""Whom a connection lands for: the first landing pins, a person moves, nothing is overwritten."""

from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import Engine, select

from pipelines.state import identities, journal
from pipelines.state.identities import Identity, Pinned
from pipelines.state.journal import LinkedPage, Reading
from pipelines.state.tables import IDENTITIES

THEN = datetime(2026, 11, 20, 2, 0, tzinfo=UTC)
NOW = THEN + timedelta(days=1)
US, THEM = Identity("host", "a" * 64, "actor us"), Identity("host", "b" * 64, "actor them")


def land(ledger: Engine, connection: str) -> None:
    scan = journal.begin(ledger, Reading("run", connection, "usage", date(2026, 11, 20)), THEN)
    page = LinkedPage(0, 0, 100, 1, "c" * 64, 200, None, THEN, THEN, {})
    journal.link(ledger, scan, page)


@pytest.mark.parametrize("identity", [US, THEM])
def test_before_its_first_landing_a_connection_may_become_anybody(
    ledger: Engine, identity: Identity
) -> None:
    land(ledger, "another")
    identities.settle(ledger, "acme", US, THEN)
    settled = identities.settle(ledger, "acme", identity, NOW)
    assert settled == Pinned(identity, THEN if identity == US else NOW, None)
    assert identities.pinned(ledger, "acme") == settled


def test_after_it_whom_it_landed_for_stays(ledger: Engine) -> None:
    identities.settle(ledger, "acme", US, THEN)
    land(ledger, "acme")
    assert identities.settle(ledger, "acme", THEM, NOW) == Pinned(US, THEN, None)
    assert identities.settle(ledger, "acme", US, NOW) == Pinned(US, THEN, None)
    assert identities.pinned(ledger, "another") is None


def test_a_person_moves_it_and_what_was_is_still_told(ledger: Engine) -> None:
    identities.settle(ledger, "acme", US, THEN)
    land(ledger, "acme")
    identities.pin(ledger, "acme", THEM, NOW, "anna")
    assert identities.settle(ledger, "acme", THEM, NOW) == Pinned(THEM, NOW, "anna")
    with ledger.connect() as reader:
        rows = reader.execute(select(IDENTITIES.c.words, IDENTITIES.c.pinned_by)).all()
    assert [tuple(row) for row in rows] == [("actor us", None), ("actor them", "anna")]
