"""Retention: the same tables with and without it, from what is kept and a base snapshot."""

import msgspec
import pytest

from pipelines import run
from pipelines.errors import LandingFailed
from pipelines.run import Session
from pipelines.run.replay import again
from pipelines.state import bases, descriptions, journal
from pipelines.state.descriptions import Difference
from tests.run.conftest import Begun
from tests.run.kept_nights import everything, home, night

NIGHTS = 6


def nights(session: Session, first: int, last: int) -> None:
    """One partner stays as it is, one changes, one comes and goes."""
    for number in range(first, last + 1):
        night(session, number, ["stays", "changes", *(["guest"] if number % 3 else [])])


def four(session: Session) -> None:
    nights(session, 1, 4)


def pages(session: Session) -> set[str]:
    return set(session.archive.pages())


def test_the_tables_are_the_same_with_and_without(begun: Begun) -> None:
    with home(begun(four)) as session:
        nights(session, 5, NIGHTS)
        expected = everything(session)
    with home(begun(four)) as session:
        assert run.retain(session, 2, "ann").dropped.manifests == 4
        nights(session, 5, NIGHTS)
        assert everything(session) == expected
        assert run.retain(session, 2, "ann").dropped.manifests == 4
        again(session)
        assert everything(session) == expected
        assert run.verify(session, lambda _news: None).faults == ()
        base = bases.newest(session.ledger)
        assert base is not None
        assert (base.number, len(base.manifests)) == (2, 8)
        files = [file.name for file in (session.settings.place.archive / "base").iterdir()]
        assert files == ["base.000002.duckdb"]
        manifests = list((session.settings.place.archive / "manifests").rglob("*.json"))
        assert len(manifests) == 4


def test_superseded_pages_stay_and_go_with_their_manifest(begun: Begun) -> None:
    def counted(session: Session) -> None:
        for number in range(1, 5):
            night(session, number, ["stays"], ["stays", "guest"])

    with home(begun(counted)) as session:
        before = pages(session)
        files = [row.file for row in journal.manifests(session.ledger, "offices")]
        read = [session.archive.read(file) for file in files]
        superseded = [each.superseded[0].sha256 for each in read]
        expected = everything(session)

        run.retain(session, 2, "ann")

        assert [each in pages(session) for each in superseded] == [False, False, True, True]
        assert pages(session) < before
        assert run.verify(session, lambda _news: None).faults == ()
        again(session)
        assert everything(session) == expected


def test_a_lost_work_database_begins_with_the_base(begun: Begun) -> None:
    with home(begun(four)) as session:
        expected = everything(session)
        run.retain(session, 1, "ann")
        (session.settings.place.work / "warehouse.duckdb").unlink()
        nights(session, 5, 5)
        found = everything(session)
    assert len(found["meta.folds"]) > len(expected["meta.folds"])
    assert found["current.offices"][-1][0]


def test_nothing_is_dropped_that_is_kept_or_pinned(begun: Begun) -> None:
    with home(begun(four)) as session:
        before = pages(session)
        assert run.retain(session, 4, "ann").base is None
        assert pages(session) == before
        pins = session.settings.place.archive / "pins"
        pins.mkdir()
        (pins / "2026-01.json").write_bytes(msgspec.json.encode(sorted(before)))
        assert run.retain(session, 1, "ann").dropped.pages == 0
        assert pages(session) == before
        (pins / "2026-01.json").unlink()
        done = run.retain(session, 1, "ann")
        assert done.dropped.pages > 0
        assert "pages were dropped" in done.words
        assert len(pages(session)) == len(before) - done.dropped.pages


def test_what_was_found_of_the_newest_reading_stays(begun: Begun) -> None:
    """Though older ones are folded again for the snapshot."""
    with home(begun(four)) as session:
        newest = journal.newest(session.ledger, "offices", "default")
        assert newest is not None
        where = ("default", "offices", "night", "is not described", "", "number")
        found = Difference(*where, newest.file, newest.written_at)
        descriptions.differ(session.ledger, "default", "offices", [found])
        run.retain(session, 1, "ann")
        assert descriptions.differences(session.ledger) == (found,)


def test_a_damaged_base_is_said_in_words(begun: Begun) -> None:
    with home(begun(four)) as session:
        run.retain(session, 1, "ann")
        before = everything(session)
        file = next((session.settings.place.archive / "base").iterdir())
        file.write_bytes(b"damaged")
        with pytest.raises(LandingFailed, match="restore it from a copy of the archive"):
            again(session)
        assert everything(session) == before
        faults = run.verify(session, lambda _news: None).faults
        assert [each.where for each in faults] == ["archive/base/base.000001.duckdb"]
