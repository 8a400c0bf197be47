"""Builds on PostgreSQL whose process is killed, or loses its session: nothing is published of them.

`python -m tests.versions.test_lost_lock HOME URL` builds once.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from pipelines.app.maintenance import rollback, verify_files
from pipelines.app.nightly import build_with_books
from pipelines.core.errors import LockLost
from pipelines.finance.books import make_books
from pipelines.metadata.engine import Metadata
from tests.metadata.test_server_session import ELSEWHERE, END_SESSIONS
from tests.reconcile.books import FIRST, bill, decide, line, partners, publish, used
from tests.versions.homes import Reading, Stores, read

pytest_plugins = ["tests.postgresql"]
MANY = [used(f"u{number}") for number in range(3000)]


def open_stores(folder: Path, url: str) -> Stores:
    """Open a home whose metadata are on PostgreSQL."""
    on_sqlite = Stores.open(folder)
    on_sqlite.metadata.close()
    on_sqlite.home.metadata_file.unlink()
    return replace(on_sqlite, metadata=Metadata.open(on_sqlite.home.metadata_file, url))


@pytest.fixture
def reconciled(tmp_path: Path, server_url: str) -> Iterator[Stores]:
    """Give a home with version 1 and its books, and rows that no version holds."""
    stores = open_stores(tmp_path / "home", server_url)
    stores.configure()
    bills = [bill("b", line("u0", "5.01"))]
    publish(stores, partners=partners([FIRST]), usage=MANY[:10], billing=bills)
    read(stores, Reading(MANY, page_size=500))
    yield stores
    stores.metadata.close()


@contextmanager
def when_written(folder: Path, act: Callable[[], object]) -> Iterator[None]:
    """Act once, from another thread, as soon as a file is being written in a folder."""
    is_over = threading.Event()

    def wait() -> None:
        while not is_over.is_set():
            if any(folder.glob(".v*.building")):
                act()
                return
            time.sleep(0.001)

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def shown(stores: Stores) -> tuple[str, str]:
    """Return what analysts and accountants open."""
    return str(stores.home.link.readlink()), str(stores.home.books_link.readlink())


def require_next_build(stores: Stores) -> None:
    """Require that the next command publishes everything, and leaves nothing of the lost one."""
    built = build_with_books(stores)
    assert built.is_new
    assert len(stores.keys()) == len(MANY)
    assert not build_with_books(stores).is_new
    assert verify_files(stores)["damaged"] == []
    books = stores.rows("SELECT books.version FROM meta.books AS books")
    assert books == [(built.version and built.version.number,)]


def test_a_build_that_loses_its_session_publishes_nothing(
    reconciled: Stores, administrator: Any
) -> None:
    before = shown(reconciled)
    with (
        when_written(reconciled.home.versions, lambda: administrator.execute(END_SESSIONS)),
        pytest.raises(LockLost, match="Nothing was published") as lost,
    ):
        build_with_books(reconciled)
    assert "Run the command again" in lost.value.remedy
    assert shown(reconciled) == before
    require_next_build(reconciled)


def test_books_whose_session_is_lost_are_not_published_and_the_build_makes_them_again(
    reconciled: Stores, administrator: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING),
        when_written(reconciled.home.books, lambda: administrator.execute(END_SESSIONS)),
    ):
        built = build_with_books(reconciled)
    assert [record.message for record in caplog.records if "lost the lock" in record.message]
    assert built.version
    version, books = shown(reconciled)
    assert version == f"versions/{built.version.path.name}"
    assert books.startswith("books/v00000002-")
    assert not make_books(reconciled).is_new
    assert verify_files(reconciled)["damaged"] == []


def test_a_decision_whose_session_is_lost_is_shown_by_the_next_books(
    reconciled: Stores, administrator: Any
) -> None:
    before = shown(reconciled)
    ((break_id,),) = reconciled.rows("SELECT break_id FROM reconciliation.breaks LIMIT 1")
    decide(reconciled, "break_assign", break_id, owner="bob")
    with (
        when_written(reconciled.home.books, lambda: administrator.execute(END_SESSIONS)),
        pytest.raises(LockLost),
    ):
        make_books(reconciled)
    assert shown(reconciled) == before
    assert make_books(reconciled).is_new


@pytest.mark.parametrize(
    ("folder", "elsewhere"),
    [
        ("versions", True),
        ("books", False),
        pytest.param("versions", False, marks=pytest.mark.slow),
        pytest.param("books", True, marks=pytest.mark.slow),
    ],
)
def test_a_build_that_is_killed_holds_back_nobody(
    reconciled: Stores, server_url: str, folder: str, *, elsewhere: bool
) -> None:
    before = shown(reconciled)
    place = reconciled.home.root / folder
    command = [sys.executable, "-m", __name__, str(reconciled.home.root), server_url]
    if elsewhere:
        command = [*ELSEWHERE, *command]
    with Popen(command) as child, when_written(place, child.kill):
        assert child.wait() == -9
        assert shown(reconciled)[1] == before[1]
        if folder == "versions":
            assert shown(reconciled) == before
            require_next_build(reconciled)
        else:
            assert make_books(reconciled).is_new
            rollback(reconciled, 1, "wrong")


if __name__ == "__main__":
    build_with_books(open_stores(Path(sys.argv[1]), sys.argv[2]))
