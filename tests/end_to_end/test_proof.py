"""Lists that change while they are read, over HTTP: what is claimed is held against the truth."""

import sqlite3
from collections.abc import Iterator

import duckdb
import pytest

from pipelines import run
from pipelines.cli.sandbox import Service
from pipelines.run import Choice
from pipelines.settings import Settings
from pipelines.state.proof import Grade
from tests.end_to_end.conftest import Point
from tests.sandbox.running import AUDIENCE, SECRET, Running, started


@pytest.fixture(scope="module")
def changing() -> Iterator[Running]:
    with started("--rate=0", "--partners=20", "--usage=6000", "--billing=1200") as running:
        yield running


@pytest.fixture
def settings(point: Point, changing: Running) -> Iterator[Settings]:
    environment = {
        "PARTNER_SYNC_BASE_URL": changing.url,
        "PARTNER_SYNC_AUTH_URL": changing.url,
        "PARTNER_SYNC_AUDIENCE": AUDIENCE,
        "PARTNER_SYNC_CLIENT_ID": "demo",
        "PARTNER_SYNC_CLIENT_SECRET": SECRET,
        "PARTNER_SYNC_WINDOW": "0",
    }
    changing.reset()
    yield point(Service(changing.url, environment))
    changing.reset()


# What happens per page of billing (100 rows), and the grades that may be claimed.
RATES: list[tuple[dict[str, float], set[Grade]]] = [
    ({"delete": 1.0}, {Grade.COMPLETE}),
    ({"delete": 2.0, "insert": 3.0}, {Grade.COMPLETE}),
    ({"insert": 10.0}, {Grade.COMPLETE}),
    ({"update": 5.0}, {Grade.COMPLETE}),
    ({"delete": 1.0, "move": 0.2}, {Grade.COMPLETE, Grade.COMPLETE_BY_COUNT, Grade.PARTIAL}),
]


def synced(settings: Settings, stream: str) -> run.Outcome:
    with run.open(settings) as session:
        return run.sync(session, run.orders(session, Choice(streams=(stream,))))


def landed(settings: Settings, key: str, stream: str) -> set[str]:
    with duckdb.connect(settings.place.link, read_only=True) as reader:
        rows = reader.execute(f"SELECT {key} FROM current.{stream}").fetchall()
    return {str(row[0]) for row in rows}


@pytest.mark.parametrize(("rates", "grades"), RATES)
def test_no_record_that_lived_through_the_reading_is_missing(
    settings: Settings, changing: Running, rates: dict[str, float], grades: set[Grade]
) -> None:
    changing.change("billing", **rates)
    with changing.scan("billing") as truth:
        outcome = synced(settings, "billing")
    manifest = outcome.streams[0].manifest
    assert manifest is not None
    assert manifest.proof.grade in grades
    assert outcome.exit_code == manifest.proof.grade.exit_code
    if manifest.proof.grade is not Grade.PARTIAL:
        assert set(truth["lived"]) <= landed(settings, "billing_id", "billing")
    assert len(truth["lived"]) > 900


def test_three_records_deleted_every_third_page_leave_none_missing(
    settings: Settings, changing: Running
) -> None:
    changing.change("usage", delete=1.0, every=3)
    with changing.scan("usage") as truth:
        outcome = synced(settings, "usage")
    manifest = outcome.streams[0].manifest
    assert manifest is not None
    assert manifest.proof.grade is Grade.COMPLETE
    assert set(truth["lived"]) <= landed(settings, "usage_id", "usage")
    assert manifest.proof.sentence("usage").startswith("usage: COMPLETE. ")


def test_a_shuffled_list_is_counted_or_partial(settings: Settings, changing: Running) -> None:
    synced(settings, "billing")
    whole = landed(settings, "billing_id", "billing")
    changing.change("billing", order="shuffled")
    outcome = synced(settings, "billing")
    manifest = outcome.streams[0].manifest
    assert manifest is not None
    assert manifest.proof.grade in {Grade.COMPLETE_BY_COUNT, Grade.PARTIAL}
    assert outcome.exit_code == manifest.proof.grade.exit_code
    assert landed(settings, "billing_id", "billing") == whole  # nothing counts as missing


def test_the_proof_is_in_the_ledger_and_in_the_manifest(settings: Settings) -> None:
    outcome = synced(settings, "billing")
    manifest = outcome.streams[0].manifest
    assert manifest is not None
    assert manifest.proof.rows == 1200
    ledger = sqlite3.connect(settings.place.state / "state.sqlite")
    (proof,) = ledger.execute("SELECT proof FROM scans").fetchone()
    ledger.close()
    assert '"grade": "COMPLETE"' in proof
    with run.open(settings) as session:
        assert session.archive.read(manifest.file).proof == manifest.proof
