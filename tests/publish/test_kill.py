"""Work on copies of a home, in processes that kill themselves at the k-th durable step.

`python -m tests.publish.test_kill HOME WORK` makes HOME-1, HOME-2, … until the work meets fewer
than k steps, and prints that k. It forks from a process without threads, so each copy costs little.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from itertools import count
from pathlib import Path
from subprocess import run
from typing import Any

import pandas as pd
import pyarrow.json
import pytest
import pytz
from sqlalchemy import Connection, Engine, event

from pipelines.app.checkup import run_checks
from pipelines.app.close import Signing, close_month, list_closes
from pipelines.app.maintenance import verify_files
from pipelines.config.connections import add_connection
from pipelines.core.errors import BuildFailed
from pipelines.publish.build import build, rebuild
from pipelines.publish.prune import prune
from tests.publish.homes import DAY, Reading, Stores, read, usage
from tests.publish.named import OTHERS, WITH_NAME, erase, files_with, roll_back, session_of
from tests.reconcile.books import FIRST, SERVICE, bill, line, partners, publish, used

LOADED_ONCE = (pd, pytz, pyarrow.json)  # DuckDB imports them; not in each of the forks
STEPS = ("fsync", "rename", "replace", "symlink", "unlink")
BEFORE = sorted(f"u{number}" for number in range(1, 11))
AFTER = sorted([*BEFORE, "u11"])
HISTORY = "SELECT _key, amount, _valid_from, _valid_to FROM history.usage ORDER BY ALL"


def kill_at(k: int) -> None:
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

    for name in STEPS:
        setattr(os, name, wrapped(getattr(os, name)))

    def commit(connection: Connection) -> None:
        raw = connection.connection.driver_connection
        assert raw
        changes = raw.total_changes
        if changes > connection.info.setdefault("changes", 0):
            connection.info["changes"] = changes
            step()

    event.listen(Engine, "commit", commit)


WORK: dict[str, Callable[[Stores], object]] = {
    "build": build,
    "rollback": lambda stores: roll_back(stores, 1),
    "prune": lambda stores: prune(stores, stores.clock.now + 9 * DAY),
    "erase": erase,
}


def close_september(stores: Stores) -> None:
    close_month(session_of(stores), Signing(date(2026, 9, 1), "ann", "bob"))


WORK["close"] = close_september


def kill_work(home: Path, work: str) -> int:
    """Kill the work at every step, in a copy of the home each; return where none was left."""
    for k in count(1):
        copy = shutil.copytree(home, home.with_name(f"{home.name}-{k}"), symlinks=True)
        child = os.fork()
        if child == 0:
            stores = Stores.open(copy)
            kill_at(k)
            WORK[work](stores)
            os._exit(0)
        if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            return k
    raise AssertionError


@pytest.mark.long
def test_a_build_that_is_killed_at_any_durable_step_is_done_by_the_next_one(
    published: Stores, capsys: pytest.CaptureFixture[str]
) -> None:
    read(published, Reading(usage(*range(1, 12), amount="2.20")))
    expected = None
    for killed in killed_homes(published, "build", capsys):
        assert killed.keys() in (BEFORE, AFTER)  # what analysts see after the kill
        build(killed)
        history = killed.rows(HISTORY)
        expected = expected or history
        assert history == expected
        assert killed.rows("SELECT count(*) FROM meta.loads") == [(2,)]
        assert sorted(row[0] for row in history if row[3] is None) == AFTER
        numbers = [version.number for version in killed.warehouse.versions()]
        assert {n for n, status in killed.versions().items() if status != "deleted"} == {*numbers}
        assert len([*killed.settings.places.versions.iterdir()]) == len(numbers)


@pytest.mark.long
def test_a_rollback_that_is_killed_is_done_by_the_next_one(
    named: Stores, capsys: pytest.CaptureFixture[str]
) -> None:
    for killed in killed_homes(named, "rollback", capsys):
        roll_back(killed, 1)
        assert killed.keys() == BEFORE
        build(killed)
        assert killed.keys() == BEFORE
        assert set(killed.statuses().values()) == {"sealed", "held", "superseded"}


@pytest.mark.long
def test_a_prune_that_is_killed_is_done_by_the_next_one(
    named: Stores, capsys: pytest.CaptureFixture[str]
) -> None:
    history = named.rows(HISTORY)
    for killed in killed_homes(named, "prune", capsys):
        assert killed.rows(HISTORY) == history
        prune(killed, killed.clock.now + 9 * DAY)
        assert sorted(killed.statuses().values()) == ["pruned", "pruned", "sealed"]
        assert len([*killed.archive.folder.glob("*/*/*")]) == 1
        assert verify_files(session_of(killed)).damaged == []
        with suppress(BuildFailed):  # the checkpoint holds everything
            rebuild(killed)
        assert killed.rows(HISTORY) == history


@pytest.mark.long
def test_an_erasure_that_is_killed_is_a_finding_until_it_is_done_again(
    published: Stores, capsys: pytest.CaptureFixture[str]
) -> None:
    read(published, Reading([*OTHERS, *WITH_NAME]))
    build(published)
    found = 0
    for killed in killed_homes(published, "erase", capsys):
        results = run_checks(session_of(killed))
        is_found = "erasure_unfinished" in {each.check.code for each in results if each.findings}
        left = files_with(killed.settings.home)
        assert is_found or len(left) in {0, 2}
        found += is_found
        if is_found or left:
            erase(killed)
        assert files_with(killed.settings.home) == []
        assert killed.keys() == BEFORE
    assert found > 5


@pytest.mark.long
def test_a_close_that_is_killed_is_whole_or_not_there(
    stores: Stores, capsys: pytest.CaptureFixture[str]
) -> None:
    add_connection(stores.settings.places.connections_file, "acme", SERVICE)
    bills = [bill("b", line("u", "5.01"))]
    publish(stores, partners=partners([FIRST]), usage=[used("u")], billing=bills)
    closed = 0
    for killed in killed_homes(stores, "close", capsys):
        if list_closes(session_of(killed)):
            closed += 1
        else:
            close_september(killed)
        build(killed)
        (row,) = list_closes(session_of(killed))
        assert (row["state"], row["problem"]) == ("closed", None)
        assert [each.name for each in killed.settings.places.closes.glob("*/.*")] == []
    assert closed >= 1


def killed_homes(stores: Stores, work: str, capsys: pytest.CaptureFixture[str]) -> Iterator[Stores]:
    """Yield the homes in which the work was killed, and one in which it was not."""
    stores.metadata.close()
    home = stores.settings.home
    command = [sys.executable, "-m", "tests.publish.test_kill", str(home), work]
    found = run(command, capture_output=True, text=True, check=True)
    tried = range(1, int(found.stdout) + 1)
    with capsys.disabled():
        print(f" {len(tried) - 1} kills", end="")  # noqa: T201 - their number is a result
    assert tried.stop > 4
    for k in tried:
        killed = Stores.open(Path(f"{home}-{k}"))
        yield killed
        killed.metadata.close()


if __name__ == "__main__":
    sys.stdout.write(str(kill_work(Path(sys.argv[1]), sys.argv[2])))
