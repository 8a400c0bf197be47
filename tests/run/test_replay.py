"""Replay: the same tables from the archive alone, in a file that takes the old one's place."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pipelines import run
from pipelines.errors import ConfigurationError, DayUnread, LandingFailed
from pipelines.run import Watch, Word
from pipelines.settings import Settings
from pipelines.state.decisions import Kind
from tests.run.nights import FIRST, Nights


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[Nights]:
    settings = Settings(
        home=tmp_path / "home",
        base_url="http://127.0.0.1:9",
        auth_url="http://127.0.0.1:9",
        audience="a",
        client_id="c",
    )
    with run.open(settings) as session:
        yield Nights(session)


ROWS = '[{"id": 1, "n": 1}, {"id": 2, "n": 1, "l": ["a"]}, {"id": 3, "n": 1.5}]'
LESS = '[{"id": 1, "n": 2}, {"id": 2, "n": 1, "l": ["a"]}]'


def test_every_manifest_is_folded_in_order_however_many_wait(nights: Nights) -> None:
    for rows in (ROWS, LESS, LESS):
        nights.read(rows)
    nights.fold()
    at_once = nights.content()
    assert len(at_once['"meta"."folds"']) == 1 + 3
    run.replay(nights.session, FIRST)
    assert nights.content() == at_once


def test_a_replay_equals_what_was_folded_night_by_night(nights: Nights) -> None:
    for rows in (ROWS, LESS, ROWS, LESS, LESS):
        nights.read(rows)
        nights.fold()
    before = nights.content()
    for first, last in ((FIRST, None), (FIRST + timedelta(days=3), FIRST + timedelta(days=4))):
        replayed = run.replay(nights.session, first, last)
        assert not replayed.errors
        assert not replayed.unread
        assert nights.content() == before
    assert sorted(file.name for file in nights.session.settings.place.work.iterdir()) == [
        "warehouse.duckdb"
    ]


def test_what_changed_about_columns_is_said_when_it_is_read_and_no_more(nights: Nights) -> None:
    said: list[str] = []
    nights.session = replace(nights.session, watch=Watch(waiting=said.append))
    for rows in (LESS, LESS.replace('"n"', '"fee": 5, "n"')):
        nights.read(rows)
        nights.fold()
    assert said == ["usage: usage.fee is new (BIGINT)"]
    run.replay(nights.session, FIRST)
    assert len(said) == 1


def test_days_that_were_never_read_are_named(nights: Nights) -> None:
    with pytest.raises(DayUnread, match="none at all"):
        run.replay(nights.session, FIRST)
    nights.read(ROWS)
    with pytest.raises(DayUnread, match=f"Days that were read: from {FIRST} to {FIRST}"):
        run.replay(nights.session, FIRST - timedelta(days=9), FIRST - timedelta(days=1))
    replayed = run.replay(nights.session, FIRST - timedelta(days=1), FIRST)
    assert replayed.unread == (FIRST - timedelta(days=1),)


def test_what_cannot_be_folded_again_leaves_the_tables_as_they_were(nights: Nights) -> None:
    nights.read(ROWS)
    nights.fold()
    before = nights.content()
    for page in (nights.session.settings.place.archive / "pages").rglob("*.zst"):
        page.unlink()
    with pytest.raises(LandingFailed, match="was folded and cannot be folded again"):
        run.replay(nights.session, FIRST)
    assert nights.content() == before


def test_a_damaged_work_database_is_built_again(nights: Nights) -> None:
    nights.read(ROWS)
    nights.fold()
    before = nights.content()
    (nights.session.settings.place.work / "warehouse.duckdb").write_bytes(
        b"nothing that DuckDB knows"
    )
    run.replay(nights.session, FIRST)
    assert nights.content() == before


MANY = json.dumps([{"id": number} for number in range(100)])
FEW = json.dumps([{"id": number} for number in range(50)])


def test_a_reading_that_lacks_too_much_waits_for_a_person(nights: Nights) -> None:
    nights.read(MANY)
    nights.fold()
    file = nights.read(FEW)
    assert isinstance(nights.fold(), LandingFailed)
    (held,) = run.waiting(nights.session, Kind.DISAPPEARED)
    assert (held.manifest, held.count) == (file, 50)
    assert held.words.startswith(f"50 of 100 rows are gone in {file}, more than 10%. If they are")
    kept = run.replay(nights.session, FIRST)
    assert len(kept.errors) == 1

    run.accept_waiting(
        nights.session, Kind.DISAPPEARED, Word("usage", "default", "ann", "a merger")
    )

    assert run.waiting(nights.session, Kind.DISAPPEARED) == []
    with nights.session.work.writing() as writer:
        missing = writer.execute("SELECT count(missing_since) FROM current.usage").fetchall()
    assert missing == [(50,)]
    before = nights.content()
    assert not run.replay(nights.session, FIRST).errors
    assert nights.content() == before
    with pytest.raises(ConfigurationError, match="nothing of usage awaits a word"):
        run.accept_waiting(nights.session, Kind.DISAPPEARED, Word("usage", "default", "ann"))


def test_the_next_reading_is_compared_with_what_was_folded_last(nights: Nights) -> None:
    for rows in (MANY, FEW, MANY):
        nights.read(rows)
        nights.fold()
    assert run.waiting(nights.session, Kind.DISAPPEARED) == []
    before = nights.content()
    assert len(before['"meta"."folds"']) == 1 + 2
    run.replay(nights.session, FIRST)
    assert nights.content() == before
