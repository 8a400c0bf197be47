"""Retention, erasure and closed months where archive, ledger and warehouse are shared.

On an object store with PostgreSQL, and with a lake as well. What is left is looked for in every
object and in both databases, not where our own code would look. Not here: the same rules in detail,
on one machine (tests/run).
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
import s3fs
from pyarrow import parquet

from benchmarks import archived
from pipelines import clock, run
from pipelines.errors import WarehouseBusy
from pipelines.run import Act, Session, Sought
from pipelines.run.erasure import Erased
from pipelines.run.replay import again
from pipelines.settings import Settings
from pipelines.settings.shared import catalogue
from pipelines.state import versions
from pipelines.warehouse import published, traces
from tests.distributed import bucket, places
from tests.run import kept_nights, months

# The erased one is the last of all: what is kept of a column's extremes would name it.
GONE, STAYS = "partner-000099", "partner-000018"
ACT = Act("ann", datetime(2026, 11, 21, tzinfo=UTC), "request 7")
HISTORY = ("history.offices", "history.offices__tags", "history.events")
CLOSED = "archive/closes/2026-01/001/"
Content = dict[str, list[tuple[object, ...]]]


@dataclass(frozen=True)
class Shared:
    """What the machines share, empty at first."""

    made: dict[str, str]

    @contextmanager
    def opened(self, settings: Settings, now: datetime | None = None) -> Iterator[Session]:
        """Open a home of such settings that keeps everything there."""
        own = settings.model_copy(update=self.made)
        with run.open(own, clock=clock.beginning(now) if now else None) as session:
            yield session

    def saying(self, text: str) -> list[str]:
        """Return the objects that say a text."""
        return bucket.saying(self.made["archive"], text)

    def killed(self, text: str) -> None:
        """Leave what a killed fold leaves in a lake: a file that no table has."""
        if "lake_data" in self.made:
            name, content = "current/offices/ducklake-left.parquet", pa.BufferOutputStream()
            parquet.write_table(pa.table({"id": [text]}), content)
            store = s3fs.S3FileSystem(skip_instance_cache=True)
            store.pipe(f"{self.made['lake_data']}/{name}", content.getvalue().to_pybytes())

    def lines(self, text: str) -> list[str]:
        """Return what of the databases says a text."""
        names = [self.made["state"].rpartition("/")[2]]
        if lake := self.made.get("warehouse"):
            names.append(catalogue(lake)["dbname"])
        dumps = [places.postgresql().dump(name) for name in names]
        return [line for dump in dumps for line in dump.splitlines() if text in line]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the object store be open to this process."""
    for name, value in places.object_store().environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=["an object store", "a lake"])
def shared(request: pytest.FixtureRequest) -> Shared:
    return Shared(places.settings(lake=request.param == "a lake"))


def nights(session: Session, *, without: str = "") -> None:
    for number in range(1, 4):
        some = [GONE, STAYS, f"partner-{number:06}"]
        kept_nights.night(session, number, [each for each in some if each != without])


def content(session: Session) -> Content:
    """Return what history says, but for where it was read."""
    with session.work.writing() as reader:
        return {
            table: reader.execute(
                f"SELECT COLUMNS(lambda name: name NOT IN ('_page', '_row', '_run', '_digest')) "
                f"FROM {table} ORDER BY ALL"
            ).fetchall()
            for table in HISTORY
        }


def faults(session: Session) -> list[str]:
    return [str(each) for each in run.verify(session, lambda _news: None).faults]


def erased(session: Session, identifier: str) -> Erased:
    return run.erase(session, Sought(identifier), ACT, lambda _done, _all: None)


@pytest.fixture
def without(tmp_path: Path) -> Content:
    """Return the history of a home of its own in which the partner never was."""
    with kept_nights.home(tmp_path / "without") as session:
        nights(session, without=GONE)
        return content(session)


def test_retained_and_erased_nothing_of_a_partner_is_left(
    shared: Shared, without: Content, tmp_path: Path
) -> None:
    home = archived.settings(tmp_path / "home", kept_nights.STREAMS)
    with shared.opened(home) as session:
        nights(session)
        before, manifests = content(session), session.archive.manifests()
        assert run.retain(session, 1, "ann").dropped.manifests == 4
        assert (len(manifests), len(session.archive.manifests())) == (6, 2)
        again(session)
        assert content(session) == before
        assert faults(session) == []
        assert {name.split("/")[1] for name in shared.saying(GONE)} >= {"base", "pages"}

        shared.killed(GONE)

        assert erased(session, GONE).left == ()

        assert (shared.saying(GONE), shared.lines(GONE)) == ([], [])
        assert list(traces.files(tmp_path / "home", GONE)) == []
        assert shared.saying(STAYS)
        assert content(session) == without
        assert faults(session) == []
        kept_nights.night(session, 4, [STAYS])
        assert faults(session) == []
    with published.opened(session.settings.place) as analysts:
        ids = analysts.database.execute("SELECT id FROM current.offices ORDER BY id").fetchall()
    assert (GONE,) not in ids
    assert (STAYS,) in ids


def test_a_closed_month_is_kept_verified_and_erased_from(shared: Shared, tmp_path: Path) -> None:
    home = archived.settings(tmp_path / "home", months.STREAMS).model_copy(
        update={"reconcile": True}
    )
    with shared.opened(home, datetime(2026, 3, 20, tzinfo=UTC)) as session:
        months.ended(session)
        session.archive.store.put(f"{CLOSED.removeprefix('archive/')}half", b"left by a kill")
        run.close_month(session, months.SIGNED)
        assert run.publish_folded(session)
        copy = frozen(shared)
        assert set(copy) >= {"manifest.json", "mapping.toml", "used.parquet", "billed.parquet"}
        assert "half" not in copy
        months.night(session, 36, months.MORE)
        run.retain(session, 1, "ann")
        assert run.publish_folded(session)
        assert faults(session) == []
        assert months.stands(session)[0] == "OUTDATED"

        done = erased(session, "partner-1")

        assert "erased since sign-off" in months.stands(session)[1]
        assert faults(session) == []
        assert shared.saying("partner-1") == sorted(done.left)
        assert {name.rpartition("/")[0] for name in done.left} == {CLOSED.rstrip("/")}
        assert shared.lines("partner-1") == []
        assert frozen(shared) == copy


def frozen(shared: Shared) -> dict[str, bytes]:
    every = bucket.objects(shared.made["archive"]).items()
    return {name.removeprefix(CLOSED): body for name, body in every if name.startswith(CLOSED)}


def test_who_finds_its_rows_published_takes_no_turn(tmp_path: Path) -> None:
    shared = Shared(places.settings(lake=True))
    home = archived.settings(tmp_path, kept_nights.STREAMS)
    with shared.opened(home) as session, ThreadPoolExecutor(1) as another:
        nights(session)
        (order,) = archived.orders(session, kept_nights.STREAMS)
        impatient = replace(session, work=replace(session.work, longest=0.0))
        with session.work.publishing():
            found = another.submit(run.publish, impatient, [order]).result()
            assert found.version == versions.opened(session.ledger)
            archived.night(session, "offices", 4, ['{"id": "new"}'])
            with pytest.raises(WarehouseBusy):
                another.submit(run.publish, impatient, [order]).result()
