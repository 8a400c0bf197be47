"""Builds in copies of a home, in processes that kill themselves at the k-th durable step.

`python -m tests.publish.killed HOME N` makes HOME-N, HOME-2N, … until a build meets fewer than
k steps, and prints that k. It forks from a process without threads, so each copy costs little.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.json
import pytz
from sqlalchemy import Engine, event

from pipelines.publish.build import build
from tests.publish.homes import Stores

LOADED_ONCE = (pd, pytz, pyarrow.json)  # DuckDB imports them; not in each of the forks
STEPS = ("fsync", "rename", "replace", "symlink")


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


def build_until_killed(home: Path, k: int) -> bool:
    """Build in a process that kills itself; return whether it was killed."""
    child = os.fork()
    if child == 0:
        stores = Stores.open(home)
        kill_at(k)
        build(stores)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def main(home: Path, every: int) -> None:
    """Try every step, or every n-th."""
    k = every
    while True:
        copy = home.with_name(f"{home.name}-{k}")
        shutil.copytree(home, copy, symlinks=True)
        if not build_until_killed(copy, k):
            break
        k += every
    sys.stdout.write(str(k))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
