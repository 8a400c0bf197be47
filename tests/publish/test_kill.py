"""Builds in copies of a home, in processes that kill themselves at the k-th durable step.

`python -m tests.publish.test_kill HOME N` makes HOME-N, HOME-2N, … until a build meets fewer than k
steps, and prints that k. It forks from a process without threads, so each copy costs little.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from subprocess import run
from typing import Any

import pandas as pd
import pyarrow.json
import pytest
import pytz
from sqlalchemy import Engine, event

from pipelines.publish.build import build
from tests.publish.homes import Reading, Stores, read, usage

LOADED_ONCE = (pd, pytz, pyarrow.json)  # DuckDB imports them; not in each of the forks
STEPS = ("fsync", "rename", "replace", "symlink")
BEFORE = sorted(f"u{number}" for number in range(1, 11))
AFTER = sorted([*BEFORE, "u11"])
HISTORY = "SELECT _key, amount, _valid_from, _valid_to FROM history.usage ORDER BY ALL"


def kill_at(k: int) -> None:
    """Let this process kill itself before its k-th durable step or commit."""
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
    event.listen(Engine, "commit", step)


def kill_builds(home: Path, every: int) -> int:
    """Kill a build at every n-th step, in a copy of the home each; return where none was left."""
    for k in count(every, every):
        copy = shutil.copytree(home, home.with_name(f"{home.name}-{k}"), symlinks=True)
        child = os.fork()
        if child == 0:
            stores = Stores.open(copy)
            kill_at(k)
            build(stores)
            os._exit(0)
        if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            return k
    raise AssertionError


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_a_build_that_is_killed_at_any_durable_step_is_done_by_the_next_one(
    published: Stores, capsys: pytest.CaptureFixture[str], every: int
) -> None:
    read(published, Reading(usage(*range(1, 12), amount="2.20")))
    published.metadata.close()
    home = published.settings.home
    command = [sys.executable, "-m", "tests.publish.test_kill", str(home), str(every)]
    found = run(command, capture_output=True, text=True, check=True)
    tried = range(every, int(found.stdout) + 1, every)
    with capsys.disabled():
        print(f" {len(tried) - 1} kills", end="")  # noqa: T201 - their number is a result
    assert tried.stop > 11
    expected = None
    for k in tried:
        killed = Stores.open(Path(f"{home}-{k}"))
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
        killed.metadata.close()


if __name__ == "__main__":
    sys.stdout.write(str(kill_builds(Path(sys.argv[1]), int(sys.argv[2]))))
