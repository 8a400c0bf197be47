"""Work on copies of a home, in processes that kill themselves at the k-th durable step.

`python -m tests.versions.test_kill HOME WORK 3` makes HOME-1, HOME-4, … until the work meets fewer
than k steps, and prints that k. It forks from a process without threads, so each copy costs little.
With files in a bucket, tests/files/test_kill.py does the same.
"""

import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from itertools import count
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pandas as pd
import pyarrow.json
import pytest
import pytz
from sqlalchemy import Connection, Engine, event

from pipelines.app.checkup import run_checks
from pipelines.app.maintenance import rollback, verify_files
from pipelines.app.nightly import build_with_books, rebuild_with_books
from pipelines.core.errors import PartnerSyncError
from pipelines.files.store import FolderStore
from pipelines.finance import approvals
from pipelines.finance.books import make_books
from pipelines.finance.books_state import why_outdated
from pipelines.finance.close import close_month, list_closes, prepare_close
from pipelines.finance.inbox import Note
from pipelines.finance.reconciled import open_books as open_published_books
from pipelines.finance.signing import Signing
from pipelines.metadata.decisions import break_decisions
from pipelines.versions.prune import prune
from pipelines.warehouse.books import BooksFolder
from tests.reconcile.books import FIRST, bill, decide, line, partners, publish, used
from tests.versions.homes import DAY, Reading, Stores, read, usage
from tests.versions.named import OTHERS, WITH_NAME, erase, files_with, roll_back

LOADED_ONCE = (pd, pytz, pyarrow.json)  # DuckDB imports them; not in each of the forks
STEPS = [(os, name) for name in ("fsync", "rename", "replace", "symlink", "unlink")]
FURTHER = usage(*range(1, 12), amount="2.20")
HAS_USAGE = "SELECT 1 FROM meta.columns WHERE table_name = 'usage' AND column_name = 'amount'"
HISTORY = "SELECT _key, amount, _valid_from, _valid_to FROM history.usage ORDER BY ALL"


def kill_at(k: int, steps: Sequence[tuple[Any, str]] = STEPS) -> None:
    """Let this process kill itself before its k-th durable step, or commit of a change."""
    left = k

    def step(*_arguments: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            step()
            return original(*arguments, **options)

        return call

    for place, name in steps:
        setattr(place, name, wrapped(getattr(place, name)))

    def commit(connection: Connection) -> None:
        raw = connection.connection.driver_connection
        assert raw
        changes = raw.total_changes
        if changes > connection.info.setdefault("changes", 0):
            connection.info["changes"] = changes
            step()

    event.listen(Engine, "commit", commit)


def roll_back_first(stores: Stores) -> None:
    roll_back(stores, 1)


def prune_old(stores: Stores) -> None:
    prune(stores, stores.clock.now + 9 * DAY)


def prune_again(killed: Stores) -> None:
    prune_old(killed)
    with suppress(PartnerSyncError):  # the checkpoint holds everything
        rebuild_with_books(killed)


def read_name(stores: Stores) -> None:
    read(stores, Reading([*OTHERS, *WITH_NAME]))
    build_with_books(stores)


def erase_again(killed: Stores) -> None:
    found = {each.check.code for each in run_checks(killed) if each.findings}
    left = kept_with_name(killed)
    assert "erasure_unfinished" in found or len(left) in {0, 2}  # it is done, or never began
    if "erasure_unfinished" in found or left:
        erase(killed)


def open_books(stores: Stores) -> None:
    stores.configure()
    bills = [bill("b", line("u", "5.01"))]
    publish(stores, partners=partners([FIRST]), usage=[used("u")], billing=bills)


def close_september(stores: Stores) -> None:
    close_month(stores, date(2026, 9, 1), "ann", "bob")
    build_with_books(stores)


def close_again(killed: Stores) -> None:
    close_september(killed)
    build_with_books(killed)
    (row,) = list_closes(killed)
    assert (row["state"], row["problem"]) == ("closed", None)
    # One that was killed before its row leaves its copy.
    assert row["number"] == len([*killed.home.closes.glob("*/*")]) <= 2


def prepare_september(stores: Stores) -> None:
    prepare_close(stores, date(2026, 9, 1), Signing("", "known"))
    build_with_books(stores)


def approve_again(killed: Stores) -> None:
    """Prepare what was killed before it was prepared, and take over an approval, twice."""
    if not list_closes(killed):
        prepare_september(killed)
    (row,) = list_closes(killed)
    assert (row["state"], row["problem"]) == ("prepared", None)
    other = 1 if os.getuid() != 1 else 2
    note = Note(other, "2026-09", row["number"], row["manifest_sha256"])
    for _ in range(2):  # as after a kill before the file of the approval is moved
        approvals._close(killed, note)
    build_with_books(killed)
    assert [each["state"] for each in list_closes(killed)] == ["closed"]


def open_more(stores: Stores) -> None:
    """Read bills that leave one break less and one more; not published yet."""
    open_books(stores)
    bills = [bill("b", line("u", "5.00")), bill("c", line("gone", "7.00"))]
    read(stores, Reading(bills, "billing", page_size=50))


def assign(stores: Stores) -> None:
    """Assign the break, if a killed process has not done it, and make books with it."""
    ((break_id, state),) = stores.rows("SELECT break_id, state FROM reconciliation.breaks")
    with stores.metadata.transaction() as session:
        is_decided = bool(break_decisions(session))
    if state == "open" and not is_decided:
        decide(stores, "break_assign", break_id, owner="bob")
    make_books(stores)


def roll_back_books(stores: Stores) -> None:
    if stores.warehouse.require_published().number > 1:
        rollback(stores, 1, "wrong")
    make_books(stores)


def open_and_publish_more(stores: Stores) -> None:
    open_more(stores)
    build_with_books(stores)


@dataclass(frozen=True)
class Work:
    """What is killed in a home (a fixture) that is prepared for it, and the commands after that."""

    home: str
    prepare: Callable[[Stores], object]
    work: Callable[[Stores], object]
    again: Callable[[Stores], object]


WORK = {
    "build": Work(
        "published", lambda home: read(home, Reading(FURTHER)), build_with_books, build_with_books
    ),
    "rollback": Work("named", repr, roll_back_first, roll_back_first),
    "prune": Work("named", repr, prune_old, prune_again),
    "erase": Work("published", read_name, erase, erase_again),
    "close": Work("stores", open_books, close_september, close_again),
    "prepare": Work("stores", open_books, prepare_september, approve_again),
    "books": Work("stores", open_more, build_with_books, build_with_books),
    "decision": Work("stores", open_books, assign, assign),
    "rollback with books": Work("stores", open_and_publish_more, roll_back_books, roll_back_books),
}


RARE = ("prepare", "erase", "prune", "rollback")  # minutes; most of their steps are those of others
# Most steps are those of one kind of file after the other. The slow tests kill at each step.
EVERY = {name: 5 for name in WORK if name not in RARE}
EVERY |= {"books": 11, "rollback with books": 11, "close": 23}  # their steps are many, and alike


def open_copy(copy: Path, _number: int) -> Stores:
    return Stores.open(copy)


def kill_work(
    home: Path,
    work: str,
    open_home: Callable[[Path, int], Stores] = open_copy,
    steps: Sequence[tuple[Any, str]] = STEPS,
    every: int = 1,
) -> int:
    """Kill the work at one step of `every`, in a copy each; return where none was left."""
    for k in count(1, every):
        copy = shutil.copytree(home, home.with_name(f"{home.name}-{k}"), symlinks=True)
        child = os.fork()
        if child == 0:
            stores = open_home(copy, k)
            kill_at(k, steps)
            WORK[work].work(stores)
            os._exit(0)
        if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            return k
    raise AssertionError


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "every"),
    [*EVERY.items(), *(pytest.param(name, 1, marks=pytest.mark.slow) for name in WORK)],
)
def test_what_is_killed_at_any_durable_step_is_done_by_the_next_command(
    name: str, every: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    stores: Stores = request.getfixturevalue(WORK[name].home)
    WORK[name].prepare(stores)
    seen = [stores.keys()]
    command = ("versions", name, str(every))
    homes = (killed for _k, killed in killed_homes(stores, capsys, command, every))
    check_killed(WORK[name], seen, homes)


def check_killed(work: Work, seen: list[list[str]], homes: Iterator[Stores]) -> None:
    """Check homes, first of all one in which the work was not killed; it may show what is seen."""
    expected = None
    for killed in homes:
        seen += [] if expected else [killed.keys()]  # of the one that was not killed
        assert killed.keys() in seen
        require_named(killed)
        work.again(killed)
        build_with_books(killed)
        expected = expected or state(killed)
        assert state(killed) == expected
        assert verify_files(killed)["damaged"] == []
        numbers = {version.number for version in killed.warehouse.versions()}
        assert {n for n, status in killed.versions().items() if status != "deleted"} == numbers
        assert {file.name for file in killed.home.versions.iterdir()} <= {
            version.path.name for version in killed.warehouse.versions()
        }
        require_books(killed)


def state(stores: Stores) -> tuple[Any, ...]:
    """Return what is the same whether something was killed or not."""
    loads = stores.rows("SELECT scan_id, rows FROM meta.loads ORDER BY ALL")
    files = sorted(file.name for file in stores.archive.store.list(stores.archive.folder, "*/*/*"))
    named = kept_with_name(stores)
    has_usage = bool(stores.rows(HAS_USAGE))
    history = stores.rows(HISTORY) if has_usage else []
    return history, loads, stores.statuses(), files, len(named), breaks(stores)


def kept_with_name(stores: Stores) -> list[str]:
    """Return the files, or objects, that contain the name."""
    found = set(files_with(stores.home.root))
    if not isinstance(stores.warehouse.store, FolderStore):
        from tests.on_bucket import downloaded  # noqa: PLC0415 - needs obstore

        with TemporaryDirectory(dir=stores.home.root.parent) as folder:
            found.update(files_with(downloaded(stores, Path(folder))))
    return sorted(found)


def breaks(stores: Stores) -> list[tuple[Any, ...]]:
    """Return what books say of breaks; nothing where nothing is mapped."""
    query = "SELECT subject, state, owner, first_seen, last_seen, gone_at FROM {} ORDER BY 1"
    with suppress(duckdb.CatalogException):
        return stores.rows(query.format("reconciliation.breaks"))
    return []


def require_named(stores: Stores) -> None:
    """Require that what is read names the version that the books are of, and has it."""
    books = BooksFolder(stores.warehouse).published()
    if books:
        with open_published_books(stores) as (version, db):
            assert version.number == books.version
            ((number,),) = db.execute("SELECT books.version FROM meta.books AS books").fetchall()
            assert number == books.version


def require_books(stores: Stores) -> None:
    """Require that the published books are those of the published version, and no other ones."""
    folder = BooksFolder(stores.warehouse)
    books = folder.published()
    assert books
    assert books.version == stores.warehouse.require_published().number
    assert not why_outdated(stores)
    of_each = Counter(each.version for each in folder.every())
    assert {*of_each.values()} == {1}
    assert len([*stores.home.books.iterdir()]) <= of_each.total()


def killed_homes(
    stores: Stores,
    capsys: pytest.CaptureFixture[str],
    arguments: Sequence[str],
    every: int = 1,
) -> Iterator[tuple[int, Stores]]:
    """Yield a home in which the work was not killed, then those in which it was at step k.

    `arguments`: the folder below tests whose test_kill.py does it, the work, and what that needs.
    """
    stores.metadata.close()
    home = stores.home.root
    folder, *others = arguments
    command = [sys.executable, "-m", f"tests.{folder}.test_kill", str(home), *others]
    found = run(command, capture_output=True, text=True, check=True)
    tried = range(1, int(found.stdout) + 1, every)
    with capsys.disabled():
        print(f" {len(tried) - 1} kills", end="")  # noqa: T201 - their number is a result
    assert len(tried) > 2
    for k in reversed(tried):
        killed = Stores.open(Path(f"{home}-{k}"))
        yield k, killed
        killed.metadata.close()


if __name__ == "__main__":
    _program, folder, name, every = sys.argv
    sys.stdout.write(str(kill_work(Path(folder), name, every=int(every))))
