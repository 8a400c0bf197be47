"""Replay after retention: from the base snapshot, equal to one from the whole archive."""

import json
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from benchmarks import archived
from pipelines import run
from pipelines.errors import DayDropped
from pipelines.run import Session
from pipelines.state.decisions import Kind
from pipelines.warehouse import meta
from tests.run.contents import Content, content
from tests.run.kept_nights import STREAMS, home

NIGHTS, KEPT = 6, 2


def day(number: int) -> date:
    return (archived.FIRST + timedelta(days=number)).date()


def records(number: int) -> Iterator[str]:
    """One stays, one changes, one comes and goes, a column appears, grows and changes its kind."""
    yield json.dumps({"id": "stays", "tags": [{"of": "it"}]})
    yield json.dumps({"id": "changes", "tags": [{"of": "it", "n": number}] * (number % 3)})
    if number % 3:
        yield json.dumps({"id": "guest", "amount": number})
    late = {1: None, 2: 1, 3: 1, 4: 1.25, 5: "much"}.get(number, 7)
    yield json.dumps({"id": "late", "odd": late} if late else {"id": "late"})
    if number in {2, 4}:
        yield '{"id": "aside", "amount": NaN}'
    yield from (json.dumps({"id": f"many-{each}"}) for each in range(20))


def night(session: Session, number: int) -> None:
    for stream in STREAMS:
        archived.night(session, stream, number, records(number))


def folded(session: Session) -> None:
    (order,) = archived.orders(session, STREAMS)
    outcomes = run.fold(session, order)
    assert not [each for each in outcomes.values() if isinstance(each, Exception)]
    run.publish(session, [order])


def lived(root: Path, *, keep: int | None = None) -> None:
    """Live through all nights; retain when two of them are to come."""
    with home(root) as session:
        for number in range(1, NIGHTS - 1):
            night(session, number)
        folded(session)
        if keep:
            dropped = run.retain(session, keep, "ann").dropped
            assert dropped.manifests == len(STREAMS) * (NIGHTS - 2 - keep)
        for number in (NIGHTS - 1, NIGHTS):
            night(session, number)
        folded(session)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """Return what is made of everything."""
    root = tmp_path_factory.mktemp("all") / "home"
    lived(root)
    with home(root) as session:
        return content(session)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kept") / "home"
    lived(root, keep=KEPT)
    return root


@pytest.fixture
def retained(kept: Path, tmp_path: Path) -> Iterator[Session]:
    shutil.copytree(kept, tmp_path / "home", symlinks=True)
    with home(tmp_path / "home") as session:
        yield session


def test_a_replay_from_the_base_equals_one_from_everything(
    retained: Session, expected: Content
) -> None:
    assert {"current.offices__tags", "history.offices", "past.events", "meta.proofs"} <= set(
        expected
    )
    assert expected["quarantine.offices"]
    assert content(retained) == expected
    for first, last in ((NIGHTS - KEPT, None), (NIGHTS, NIGHTS)):
        replayed = run.replay(retained, day(first), day(last) if last else None)
        assert not replayed.errors
        assert content(retained) == expected


def test_a_day_in_the_base_is_refused_in_words(retained: Session) -> None:
    before = content(retained)
    dropped, first = NIGHTS - 2 - KEPT, NIGHTS - 1 - KEPT
    words = (
        f"{day(dropped)} cannot be folded again: `partner-sync retain` .on .*, by ann. folded "
        f"the readings of {day(1)} to {day(dropped)} into the base snapshot.*, and can begin on "
        f"{day(first)}"
    )
    for since, until in ((day(dropped), None), (day(dropped), day(dropped)), (day(0), day(first))):
        with pytest.raises(DayDropped, match=words if since != day(0) else "cannot be folded"):
            run.replay(retained, since, until)
    assert content(retained) == before
    assert not run.replay(retained, day(first)).errors


@pytest.mark.parametrize("how", ["lost", "begun empty by another verb", "begun anew"])
def test_a_sync_rebuilds_a_work_database_from_the_base(
    how: str, retained: Session, expected: Content
) -> None:
    file = retained.settings.place.work / "warehouse.duckdb"
    file.unlink()
    if how == "begun empty by another verb":
        assert run.waiting(retained, Kind.DISAPPEARED) == []
        assert file.exists()
    if how == "begun anew":
        with retained.work.writing() as writer:
            writer.execute(f"CREATE SCHEMA meta; {meta.FOLDS}")
    folded(retained)
    assert content(retained) == expected
