"""The lake against the embedded default: the same service, several processes, an analyst meanwhile.

All of it through the program, on PostgreSQL and an object store. Not here: what a fold or a rule
makes of records (tests/warehouse, tests/reconciliation).
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from tests.distributed import places
from tests.distributed.accounts import Accounts, serving
from tests.distributed.analyst import asking
from tests.distributed.attached import attach, recipe, statements
from tests.distributed.comparison import compared
from tests.distributed.rehearsal import CHECKOUT, embedded

LISTS = ("--rate=0", "--partners=20", "--usage=600", "--billing=120", "--plant")


@dataclass
class Shared:
    """One home whose ledger, archive and warehouse several machines may share."""

    home: Path
    environment: Mapping[str, str]

    def program(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run partner-sync; return what became of it."""
        file = str(Path(sys.executable).with_name("partner-sync"))
        return subprocess.run(
            [file, *words],
            env={**os.environ, **self.environment},
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )

    def done(self, *words: str) -> str:
        """Run partner-sync to a good end; return what it printed."""
        ended = self.program(*words)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    @contextmanager
    def analyst(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Attach what is published as analysts do, under the name `lake`."""
        with duckdb.connect() as database:
            attach(database, self.home, self.environment)
            yield database

    def ask(self, query: str) -> list[tuple[object, ...]]:
        """Return what an analyst finds now."""
        with self.analyst() as database:
            return database.execute(query).fetchall()


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounts]:
    with serving(tmp_path_factory.mktemp("accounts"), 2, *LISTS) as running:
        yield running


@pytest.fixture(scope="module")
def plain(accounts: Accounts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home in which the embedded default read every connection."""
    return embedded(tmp_path_factory.mktemp("plain") / "home", accounts)


@pytest.fixture(scope="module")
def shared(accounts: Accounts, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """Return a home whose connections were read into a lake, by a process each, at once."""
    home = tmp_path_factory.mktemp("shared") / "home"
    accounts.write(home)
    environment = {
        "PARTNER_SYNC_HOME": str(home),
        "PARTNER_SYNC_WINDOW": "0",
        "PARTNER_SYNC_KEEP_VERSIONS": "2",
        "PARTNER_SYNC_RECONCILE": "true",
        **places.variables(places.settings(lake=True)),
        **places.object_store().environment,
        **accounts.secrets,
    }
    made = Shared(home, environment)
    with ThreadPoolExecutor() as pool:
        each = [("sync", "--connection", name) for name in accounts.connections]
        list(pool.map(lambda words: made.done(*words), each))
    return made


def test_every_table_is_that_of_the_embedded_default(shared: Shared, plain: Path) -> None:
    with shared.analyst() as database:
        database.execute(f"ATTACH '{plain / 'warehouse.duckdb'}' AS there (READ_ONLY)")
        found = list(compared(database, "lake", "there"))
    assert len(found) > 40
    assert [each for each in found if not each.same] == []
    assert {each.table for each in found if each.rows} >= {"current.usage", "reports.sync_health"}


def test_an_analyst_sees_whole_nights_only_and_is_never_refused(
    shared: Shared, accounts: Accounts
) -> None:
    asked = asking(shared.home, shared.environment, pause=0.0)
    with asked as seen, ThreadPoolExecutor() as pool:
        each = [("sync", "--connection", name) for name in accounts.connections]
        list(pool.map(lambda words: shared.done(*words), each))
    assert seen.early + seen.refused == []
    assert {whole[:2] for whole in seen.answers} == {(True, True)}
    assert len({version for *_whole, version in seen.answers}) > 1


def test_an_account_of_analysts_has_what_the_page_says_and_no_more(shared: Shared) -> None:
    lake = shared.environment["PARTNER_SYNC_WAREHOUSE"]
    database = lake.split("dbname=")[1].split()[0]
    server = places.postgresql()
    server.ask("CREATE ROLE analyst LOGIN")
    server.ask(statements()[1], database)
    own = {"PARTNER_SYNC_WAREHOUSE": lake.replace("user=postgres", "user=analyst")}
    with duckdb.connect() as asking:
        *told, past = recipe({**shared.environment, **own})
        for statement in told:
            asking.execute(statement)
        assert asking.fetchall() == shared.ask(
            "SELECT stream, rows, day, grade FROM lake.meta.freshness"
        )
        now = past.replace("INTERVAL 1 DAY", "INTERVAL 0 DAY")
        seen = asking.execute(f"{now} ORDER BY ALL").fetchall()
        assert seen == shared.ask("FROM lake.current.usage ORDER BY ALL")
        [attached] = [each for each in told if each.startswith("ATTACH")]
        with pytest.raises(duckdb.Error, match="permission denied"):
            asking.execute(attached.replace("lake (", "whole (").replace("'published'", "'folded'"))


def test_a_version_is_rolled_back_and_kept_as_long_as_is_set(shared: Shared) -> None:
    version = "SELECT any_value(version) FROM lake.meta.freshness"
    [(newest,)] = shared.ask(version)
    shared.done("publish", "--rollback", "--reason", "a trial")
    [(opened,)] = shared.ask(version)
    assert isinstance(newest, int)
    assert opened == newest - 1
    shared.done("sync", "--connection", "c02")
    assert shared.ask(version) == [(newest + 1,)]
    assert len(shared.ask("SELECT * FROM lake.current.partners")) > 0


def test_what_was_folded_is_found_sound_and_built_again_the_same(shared: Shared) -> None:
    rows = "FROM lake.{} ORDER BY ALL"
    tables = ("current.usage", "current.billing__lines", "history.partners")
    before = [shared.ask(rows.format(table)) for table in tables]
    shared.done("verify")
    shared.done("replay", "--from", "2026-01-01")
    assert [shared.ask(rows.format(table)) for table in tables] == before
    shared.done("verify")
