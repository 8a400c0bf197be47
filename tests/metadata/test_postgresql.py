"""The metadata database on a real PostgreSQL: what holds on SQLite too, and what a server adds."""

import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from pipelines.app.nightly import build_with_books
from pipelines.app.session import open_session
from pipelines.config.home import Home
from pipelines.core.errors import ConfigurationError, ExitCode, StorageFailed
from pipelines.core.files import write_durably
from pipelines.metadata.engine import Metadata
from pipelines.metadata.tables import Scan
from tests.homes import make_home, rows, sync_once, synced_home
from tests.metadata import test_engine, test_rows, test_scans
from tests.metadata.test_engine import CHILD, KILLED, TIMES, check_children, child
from tests.sandbox.running import Running

pytest_plugins = ["tests.postgresql"]
SHARED = vars(test_rows) | vars(test_scans)
globals().update({name: each for name, each in SHARED.items() if name.startswith("test_")})
test_the_tables = test_engine.test_the_tables_are_those_of_the_newest_revision
test_the_revision_before = test_engine.test_a_database_of_the_revision_before_gets_the_same_tables
test_a_transaction = test_engine.test_a_transaction_commits_at_its_end_or_rolls_back
LOCK = "SELECT pg_advisory_lock(hashtextextended(current_schema(), 7405112))"
UNLOCK = "SELECT pg_advisory_unlock_all()"
TERMINATE = "SELECT pg_terminate_backend(pid, 9999) FROM pg_stat_activity WHERE state = 'idle'"
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
PUBLISHED = (  # without times and identifiers
    "SELECT * EXCLUDE (_valid_from, _valid_to, _scan_id) FROM history.usage ORDER BY ALL",
    "SELECT connection, trigger, outcome, message, rate_limited FROM meta.runs",
    "SELECT code, subject, severity, message, blocks FROM meta.findings ORDER BY ALL",
    "SELECT number, status, base, note FROM meta.versions ORDER BY ALL",
)


@pytest.fixture
def metadata(tmp_path: Path, server_url: str) -> Iterator[Metadata]:
    with closing(Metadata.open(tmp_path / "metadata.db", server_url)) as opened:
        opened.this_process()  # so that it lives
        yield opened


def test_two_homes_create_one_database_and_one_process_is_killed(
    tmp_path: Path, server_url: str, administrator: Any
) -> None:
    administrator.execute(LOCK)
    files = {CHILD: tmp_path / "a" / "metadata.db", KILLED: tmp_path / "b" / "metadata.db"}
    children = [child(code, file, TIMES, server_url) for code, file in files.items()]
    while administrator.execute(WAITING).fetchone() != (2,):
        assert [each.poll() for each in children] == [None, None]
        time.sleep(0.01)
    administrator.execute(UNLOCK)
    check_children(children, tmp_path / "metadata.db", server_url)


def test_a_server_that_cannot_be_used_is_named(metadata: Metadata, administrator: Any) -> None:
    file = metadata.locks.folder.with_name("metadata.db")
    with pytest.raises(StorageFailed, match="refused") as refused:
        Metadata.open(file, "postgresql://somebody:password@127.0.0.1:1/database", busy_seconds=0)
    assert "password" not in str(refused.value)
    assert refused.value.remedy.startswith("Start the PostgreSQL server")
    administrator.execute(LOCK)
    with pytest.raises(StorageFailed, match="due to lock timeout"):
        Metadata.open(file, metadata.engine.url.render_as_string(), busy_seconds=0)
    administrator.execute(UNLOCK)
    administrator.execute(TERMINATE)
    with (  # noqa: PT012 - it fails within the transaction
        pytest.raises(StorageFailed, match="terminating connection"),
        metadata.transaction() as session,  # over a new connection
    ):
        administrator.execute(TERMINATE.replace("'idle'", "'idle in transaction'"))
        session.execute(text("SELECT 1"))
    with metadata.transaction():
        pass


def test_a_sync_publishes_the_same_as_on_sqlite(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, server_url: str, sandbox: Running
) -> None:
    home = make_home(tmp_path / "home", sandbox)
    write_durably(home.settings_file, f'metadata_url = "{server_url}"\n'.encode())
    assert sync_once(home).exit_code == ExitCode.DONE
    on_sqlite = synced_home(tmp_path_factory, sandbox)
    for sql in PUBLISHED:
        assert rows(home, sql) == rows(on_sqlite, sql)
    assert sync_once(home).exit_code == ExitCode.DONE
    assert rows(home, "SELECT count(*), count(_valid_to) FROM history.usage") == [(1500, 0)]
    assert not home.metadata_file.exists()


def test_a_second_home_in_one_database_is_refused_and_marks_nothing(
    tmp_path: Path, server_url: str, sandbox: Running
) -> None:
    one, two = (make_home(tmp_path / name, sandbox) for name in ("one", "two"))
    for home in (one, two):
        home.settings_file.write_text(f'metadata_url = "{server_url}"\n')
    assert sync_once(one).exit_code == ExitCode.DONE
    with pytest.raises(ConfigurationError, match=f"belongs to the home {one.root}"):
        sync_once(two)
    assert not list(two.archive.iterdir())
    assert not two.link.exists()
    with open_session(one) as session:
        assert not build_with_books(session).is_new
        with session.metadata.transaction() as db:
            assert {scan.status for scan in db.query(Scan)} == {"sealed"}
            db.execute(text("CREATE SCHEMA second"))
    copy = shutil.copytree(one.root, tmp_path / "copy", symlinks=True)
    with (
        pytest.raises(ConfigurationError, match=f"is a copy of {one.root}"),
        open_session(Home(copy)),
    ):
        pass
    moved = one.root.rename(tmp_path / "moved")
    with open_session(Home(moved)) as session:
        assert not build_with_books(session).is_new
    own = f"{server_url}&options=-csearch_path%3Dsecond"
    two.settings_file.write_text(f'metadata_url = "{own}"\n')
    assert sync_once(two).exit_code == ExitCode.DONE


def test_a_process_whose_environment_lacks_the_server_changes_nothing(
    tmp_path: Path, server_url: str, sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_home(tmp_path / "home", sandbox)
    monkeypatch.setenv("PARTNER_SYNC_METADATA_URL", server_url)
    with open_session(home):
        pass
    monkeypatch.delenv("PARTNER_SYNC_METADATA_URL")
    with pytest.raises(ConfigurationError, match="metadata_url is not set"), open_session(home):
        pass
    assert not home.metadata_file.exists()
