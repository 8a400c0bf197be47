"""Replay: the same tables from the archive alone, in a file that takes the old one's place."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from pipelines import run
from pipelines.errors import ConfigurationError, DayUnread, LandingFailed
from pipelines.run import Order, Session, Word
from pipelines.settings import Settings
from pipelines.state import journal
from pipelines.state.journal import LinkedPage, ManifestRow, Reading
from pipelines.state.proof import Grade, Proof
from pipelines.streams import known
from pipelines.warehouse.archive import Manifest
from tests.warehouse.conftest import NOON

FIRST = NOON.date()


@dataclass
class Nights:
    """A home whose archive is written night by night, as a scan would."""

    session: Session
    nights: int = 0

    def read(self, *records: str, grade: Grade = Grade.COMPLETE) -> str:
        """Archive a night of the stream usage, a page a text; return the manifest's file."""
        connection = "default"
        ended, day = NOON + timedelta(days=self.nights), FIRST + timedelta(days=self.nights)
        self.nights += 1
        archive, ledger = self.session.archive, self.session.ledger
        scan = journal.begin(ledger, Reading("run", connection, "usage", day), ended)
        pages = []
        for position, text in enumerate(records):
            envelope = {"limit": 100, "offset": position * 100, "has_more": False}
            body = f'{{"data": {text}, "pagination": {json.dumps(envelope)}}}'.encode()
            page = LinkedPage(
                position,
                position * 100,
                100,
                len(json.loads(text)),
                archive.put(body),
                200,
                None,
                ended,
                ended,
                {},
            )
            pages.append(page)
        rows = sum(page.rows for page in pages)
        proof = Proof(grade, rows, len(pages), 0, 1, 0, "id", False, ended, ended)
        manifest = Manifest(
            connection, "usage", day, 1, "run", scan, "id", ended, ended, tuple(pages), proof=proof
        )
        archive.write(manifest)
        row = ManifestRow(
            connection, "usage", day, 1, scan, manifest.file, len(pages), rows, proof, ended
        )
        journal.add_manifest(ledger, row)
        return manifest.file

    def order(self) -> Order:
        own = [stream for stream in known(self.session.settings) if stream.name == "usage"]
        return Order(self.session.settings.connection(), FIRST, own)

    def fold(self) -> object:
        return run.fold(self.session, self.order())["usage"]

    def content(self) -> dict[str, list[tuple[object, ...]]]:
        """Return every value and type of every table, but for when it was done."""
        with self.session.work.writing() as writer:
            tables = writer.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT temporary AND "
                "(schema_name <> 'meta' OR table_name IN ('folds', 'registry', 'held_back'))"
            ).fetchall()
            found: dict[str, list[tuple[object, ...]]] = {}
            for schema, table in tables:
                name = f'"{schema}"."{table}"'
                columns = writer.execute(f"DESCRIBE {name}").fetchall()
                own = [f'"{each}"' for each, *_ in columns if each != "folded_at"]
                rows = writer.execute(f"SELECT {', '.join(own)} FROM {name} ORDER BY ALL")
                found[name] = [tuple(each[:2] for each in columns), *rows.fetchall()]
        return found


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
    nights.session.work.file.write_bytes(b"nothing that DuckDB knows")
    run.replay(nights.session, FIRST)
    assert nights.content() == before


MANY = json.dumps([{"id": number} for number in range(100)])
FEW = json.dumps([{"id": number} for number in range(50)])


def test_a_reading_that_lacks_too_much_waits_for_a_person(nights: Nights) -> None:
    nights.read(MANY)
    nights.fold()
    file = nights.read(FEW)
    assert isinstance(nights.fold(), LandingFailed)
    (held,) = run.held_back(nights.session)
    assert (held.manifest, held.there, held.gone) == (file, 100, 50)
    kept = run.replay(nights.session, FIRST)
    assert len(kept.errors) == 1

    run.accept_gone(nights.session, Word("usage", "default", "ann", "a merger"))

    assert run.held_back(nights.session) == []
    with nights.session.work.writing() as writer:
        missing = writer.execute("SELECT count(missing_since) FROM current.usage").fetchall()
    assert missing == [(50,)]
    before = nights.content()
    assert not run.replay(nights.session, FIRST).errors
    assert nights.content() == before
    with pytest.raises(ConfigurationError, match="nothing of usage is held back"):
        run.accept_gone(nights.session, Word("usage", "default", "ann"))


def test_the_next_reading_is_compared_with_what_was_folded_last(nights: Nights) -> None:
    for rows in (MANY, FEW, MANY):
        nights.read(rows)
        nights.fold()
    assert run.held_back(nights.session) == []
    before = nights.content()
    assert len(before['"meta"."folds"']) == 1 + 2
    run.replay(nights.session, FIRST)
    assert nights.content() == before
