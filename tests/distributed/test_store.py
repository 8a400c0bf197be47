"""The archive on an object store, disturbed: kill -9, a store that is away, two that write at once.

Syncs as programs of their own, through a gate before the store. Not here: what the archive keeps
(tests/warehouse on S3), what retention, erasure and closes make of it (test_keeping).
"""

import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import duckdb
import pytest
import s3fs
from sqlalchemy import Engine, NullPool, create_engine, text

from pipelines.cli.sandbox import Service
from pipelines.settings import PREFIX
from pipelines.warehouse import objects
from tests import forked
from tests.cli.program import clean, ran
from tests.distributed import bucket, places
from tests.distributed.attached import attach
from tests.distributed.gate import PATIENCE, Gate, Nth, OneByOne, standing
from tests.end_to_end.stand import KEYS, Published, published
from tests.forked import Done, Forked
from tests.sandbox.running import sandboxed

LISTS = ("--rate=0", "--partners=300", "--usage=1500", "--billing=400")
COUNT = 3  # lists, so many manifests
PAGE, MANIFEST = "PUT /[^/]+/archive/pages/", "PUT /[^/]+/archive/manifests/"
LINKED = """
SELECT scans.stream, pages."offset" FROM pages JOIN scans USING (scan) WHERE scans.status <> 'read'
"""
ASKED = """
SELECT stream, query FROM requests WHERE stream IS NOT NULL
AND run = (SELECT run FROM runs ORDER BY begun_at DESC LIMIT 1)
"""
Place = tuple[str, int]


@dataclass(frozen=True)
class Home:
    """A home whose ledger and archive are shared; its requests for objects go through a gate."""

    root: Path
    environment: dict[str, str]
    ledger: Engine
    gate: Gate

    def begun(self, *words: str) -> Forked:
        """Begin to run the program."""
        return forked.start(forked.partner_sync, [*words], clean(self.environment), stderr=True)

    def beside(self, others: dict[str, str]) -> "Home":
        """Return the same home, but for some variables."""
        ledger = create_engine(others[f"{PREFIX}STATE"], poolclass=NullPool)
        return Home(self.root, self.environment | others, ledger, self.gate)

    def done(self, *words: str) -> Done:
        """Run the program to its end."""
        return self.begun(*words).communicate(3 * PATIENCE)

    def linked(self) -> set[Place]:
        """Return which pages of unfinished readings are on record."""
        with self.ledger.connect() as ledger:
            return {(stream, offset) for stream, offset in ledger.execute(text(LINKED))}

    def asked(self) -> set[Place]:
        """Return which pages the last run asked the service for."""
        with self.ledger.connect() as ledger:
            return {
                (stream, int(offset))
                for stream, query in ledger.execute(text(ASKED))
                for offset in re.findall(r"offset=(\d+)", query)
            }

    def manifests(self) -> list[str]:
        """Return the names of the manifests in the store."""
        folder, every = "archive/manifests/", bucket.objects(self.archive)
        return sorted(name.removeprefix(folder) for name in every if name.startswith(folder))

    @property
    def archive(self) -> str:
        """Where the archive lies."""
        return self.environment[f"{PREFIX}ARCHIVE"]

    def seen(self, query: str) -> list[tuple[object, ...]]:
        """Return what an analyst of the lake finds."""
        with duckdb.connect() as database:
            attach(database, self.root, self.environment)
            return database.execute(query).fetchall()

    def recorded(self) -> list[str]:
        """Return the names of the manifests that the ledger has."""
        with self.ledger.connect() as ledger:
            return sorted(ledger.execute(text("SELECT file FROM manifests")).scalars())


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with sandboxed(*LISTS) as running:
        yield running


@pytest.fixture(scope="module")
def good(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Published:
    """Return what the embedded default publishes of the same service."""
    home = tmp_path_factory.mktemp("good") / "home"
    done = ran(
        {**service.environment, "PARTNER_SYNC_WINDOW": "0", "PARTNER_SYNC_HOME": str(home)}, "sync"
    )
    assert done.returncode == 0, done.stderr
    return published(home)


@pytest.fixture
def home(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    for name, value in places.object_store().environment.items():
        monkeypatch.setenv(name, value)  # for what the test itself asks the store
    made = places.settings(lake=False)
    with standing(places.object_store().port) as gate:
        environment = {
            **service.environment,
            **places.object_store().environment,
            **places.variables(made),
            "PARTNER_SYNC_WINDOW": "0",
            "PARTNER_SYNC_HOME": str(tmp_path / "home"),
            "AWS_ENDPOINT_URL": gate.address,
            "AWS_MAX_ATTEMPTS": "1",  # s3fs tries five times as well
        }
        ledger = create_engine(made["state"], poolclass=NullPool)
        yield Home(tmp_path / "home", environment, ledger, gate)


def went_on(home: Home, before: set[Place], good: Published) -> None:
    """Look at a run that went on: nothing was asked for again, lost or doubled."""
    again = before & home.asked()
    assert [place for place in again if place[1]] == []  # the first page is read again at the end
    assert published(home.root) == good
    assert home.manifests() == home.recorded()
    verified = home.done("verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr


KILLS = {
    "a page is stored and not linked": ("after", PAGE, 9),
    "a manifest is not stored": ("before", MANIFEST, 1),
    "a manifest is stored and not recorded": ("after", MANIFEST, 2),
}


@pytest.mark.parametrize("moment", KILLS)
def test_a_killed_sync_goes_on_where_it_was(home: Home, good: Published, moment: str) -> None:
    side, like, number = KILLS[moment]
    released = Event()
    home.gate.at[side] = held = Nth(like, number, released.wait)
    sync = home.begun("sync")
    assert held.met.wait(PATIENCE)
    sync.send_signal(signal.SIGKILL)
    sync.communicate()
    before = home.linked()
    assert len(before) > 5
    released.set()

    resumed = home.done("sync")

    assert resumed.returncode == 0, resumed.stderr
    went_on(home, before, good)


AWAY = {
    "while pages are read": ("before", PAGE, 9),
    "when a list is read": ("after", MANIFEST, 1),
    "when all lists are read": ("after", MANIFEST, COUNT),
}


@pytest.mark.parametrize("moment", AWAY)
def test_a_store_that_is_away_is_said_and_nothing_is_lost(
    home: Home, good: Published, moment: str
) -> None:
    side, like, number = AWAY[moment]
    home.gate.at[side] = Nth(like, number, home.gate.close)
    failed = home.done("sync")
    assert failed.returncode == 1
    assert "cannot be reached" in failed.stdout + failed.stderr
    assert "Traceback" not in failed.stdout + failed.stderr
    before = home.linked()
    home.gate.open()

    resumed = home.done("sync")

    assert resumed.returncode == 0, resumed.stderr
    went_on(home, before, good)


@pytest.mark.parametrize("made_of", ["current", "reports"])  # a fold, a publication
def test_a_lake_whose_store_is_away_is_as_it_was(home: Home, good: Published, made_of: str) -> None:
    made = home.beside(places.variables(places.settings(lake=True)))
    made.gate.at["before"] = away = Nth(f"PUT /[^/]+/lake/{made_of}/", 1, made.gate.close)
    failed = made.done("sync")
    assert away.met.is_set()
    assert failed.returncode == 1
    assert "Traceback" not in failed.stdout + failed.stderr
    assert "what was read is archived" in (failed.stdout + failed.stderr).lower()
    assert "Failed run (default)" in failed.stderr
    made.gate.open()

    resumed = made.done("sync")

    assert resumed.returncode == 0, resumed.stderr
    for stream, keys in good.keys.items():
        rows = made.seen(f'SELECT "{KEYS[stream]}" FROM lake.current."{stream}"')
        assert sorted(rows) == sorted(keys)
    verified = made.done("verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_an_erasure_that_is_killed_in_a_lake_is_finished_by_the_next(home: Home) -> None:
    made, released = home.beside(places.variables(places.settings(lake=True))), Event()
    assert made.done("sync").returncode == 0
    [(gone,)] = made.seen("SELECT max(partner_id) FROM lake.current.partners")
    erase = ["erase", "--partner", str(gone), "--reason", "request 7", "--yes"]
    made.gate.at["after"] = held = Nth("PUT /[^/]+/lake/current/", 2, released.wait)
    erasing = made.begun(*erase)
    assert held.met.wait(PATIENCE)
    erasing.send_signal(signal.SIGKILL)
    erasing.communicate()
    released.set()
    assert made.seen("SELECT max(partner_id) FROM lake.current.partners") == [(gone,)]

    erased = made.done(*erase)

    assert erased.returncode == 0, erased.stdout + erased.stderr
    assert bucket.saying(made.archive, str(gone)) == []
    assert made.seen(f"FROM lake.current.partners WHERE partner_id = '{gone}'") == []
    verified = made.done("verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def create(arguments: list[str]) -> None:
    """Create a file in a store as one of several processes; tell what became of it."""
    address, scratch, content = arguments
    try:
        objects.opened(address, Path(scratch)).create("one", content.encode())
    except FileExistsError:
        sys.stdout.write("there is another\n")
    else:
        sys.stdout.write("created\n")


@pytest.mark.parametrize(
    ("contents", "told"),
    [
        (["first", "second"], ["created\n", "there is another\n"]),
        (["the same", "the same"], ["created\n", "created\n"]),
    ],
)
def test_of_two_processes_one_creates_a_file(
    home: Home, tmp_path: Path, contents: list[str], told: list[str]
) -> None:
    """Both have found out that it is not there before either is heard by the store."""
    address = home.archive
    together = OneByOne("PUT .*/one", 2)
    home.gate.at = {"before": together.before, "after": together.after}
    started = [
        forked.start(create, [address, str(tmp_path), each], clean(home.environment), stderr=True)
        for each in contents
    ]
    done = [each.communicate() for each in started]
    assert sorted(each.stdout for each in done) == told, done
    kept = s3fs.S3FileSystem(skip_instance_cache=True).cat(f"{address}/one").decode()
    created = [each.stdout == "created\n" for each in done]
    assert contents[created.index(True)] == kept


def test_two_ledgers_that_share_an_archive_keep_both_manifests(home: Home, tmp_path: Path) -> None:
    """As where the lock was lost that numbers them: the store itself lets a name be given once."""
    together = OneByOne(f"{MANIFEST}default/partners/", 2)
    home.gate.at = {"before": together.before, "after": together.after}
    other = places.variables({"state": places.database(), "home": str(tmp_path / "other")})
    second = home.beside(other)
    done = [each.communicate() for each in (home.begun("sync"), second.begun("sync"))]
    assert [each.returncode for each in done] == [0, 0], done
    assert home.manifests() == sorted(home.recorded() + second.recorded())
    assert len(home.manifests()) == 2 * COUNT
