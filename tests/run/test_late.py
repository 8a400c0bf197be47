"""A word that comes after later readings were folded: the tables are as if it had been there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines import run
from pipelines.errors import LandingFailed
from pipelines.run import Word
from pipelines.settings import StreamSettings
from pipelines.state.decisions import Kind
from tests.run.nights import FIRST, USAGE, Nights, Source
from tests.run.test_any_history import home

OTHER = Source("second")
THREE = '[{"id": 1, "n": 1}, {"id": 2, "n": 1}, {"id": 3, "n": 1}]'
# Fewer rows, and a column that the other connection will have with another kind of value.
ONE = '[{"id": 1, "n": 1, "late": "text", "more": true}]'
MORE = '[{"id": 1, "n": 1, "new": 1}, {"id": 2, "n": 1}, {"id": 3, "n": 1}]'
NUMBER = '[{"id": 7, "n": 1, "other": 1, "late": 5}]'
BROKEN = '[{"id": 1, "late": "text"}, {"id": 2, "n": NaN}, {"id": 3, "n": NaN}]'


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[Nights]:
    with home(tmp_path / "home") as opened:
        yield opened


def types(nights: Nights) -> dict[str, str]:
    with nights.session.work.writing() as writer:
        found = writer.execute("DESCRIBE current.usage").fetchall()
    return {name: kind for name, kind, *_ in found if name in {"late", "late__text", "other"}}


@pytest.mark.parametrize(("held", "kind"), [(ONE, Kind.DISAPPEARED), (BROKEN, Kind.QUARANTINE)])
def test_a_late_word_gives_the_columns_that_a_timely_one_gives(
    nights: Nights, held: str, kind: Kind
) -> None:
    for source, records in ((USAGE, THREE), (USAGE, held), (OTHER, NUMBER)):
        nights.read(records, of=source)
        nights.fold(source)
    assert types(nights) == {"late": "BIGINT", "other": "BIGINT"}

    word = Word("usage", "default", "ann")
    run.accept_waiting(nights.session, kind, word)

    assert types(nights) == {"late": "VARCHAR", "late__text": "VARCHAR", "other": "BIGINT"}
    before = nights.content()
    (nights.session.settings.place.work / "warehouse.duckdb").unlink()
    nights.fold()
    assert nights.content() == before


def test_what_is_held_back_is_not_let_in_by_a_word_about_another_connection(
    tmp_path: Path,
) -> None:
    """The column that it awaits a word for is there by then: in order, it was not."""
    frozen = {"usage": StreamSettings(policy="freeze")}
    with home(tmp_path / "home", frozen) as nights:
        for source in (USAGE, OTHER):
            nights.read(THREE, of=source)
            nights.fold(source)
        for source in (USAGE, OTHER):
            nights.read(MORE, of=source)
            assert isinstance(nights.fold(source), LandingFailed)
        run.accept_waiting(nights.session, Kind.SCHEMA, Word("usage", "second", "ann"))

        found = nights.fold()

        assert "awaits a word still" in str(found)
        before = nights.content()
        assert run.replay(nights.session, FIRST).errors
        assert nights.content() == before
        run.accept_waiting(nights.session, Kind.SCHEMA, Word("usage", "default", "ann"))
        before = nights.content()
        assert len(before['"meta"."folds"']) == 1 + 4
        assert not run.replay(nights.session, FIRST).errors
        assert nights.content() == before


def test_a_timely_word_builds_nothing_anew(nights: Nights) -> None:
    for records in (THREE, ONE):
        nights.read(records)
        nights.fold()
    file = nights.session.settings.place.work / "warehouse.duckdb"
    inode = file.stat().st_ino
    run.accept_waiting(nights.session, Kind.DISAPPEARED, Word("usage", "default", "ann"))
    assert file.stat().st_ino == inode
