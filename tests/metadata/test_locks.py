"""Locks: one holder at a time, who it is, and what remains of a killed one."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipelines.core.errors import LockHeld, StorageFailed
from pipelines.metadata import locks
from pipelines.metadata.locks import hold_lock

HOLD = """
import sys
from pathlib import Path
from pipelines.metadata.locks import hold_lock
with hold_lock(Path(sys.argv[1]), "build"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by_child(folder: Path) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child


def test_a_free_lock_is_held_at_once(tmp_path: Path) -> None:
    for _ in range(2):
        with hold_lock(tmp_path, "build") as has_waited, hold_lock(tmp_path, "other"):
            assert not has_waited
    for _ in range(2):
        with pytest.raises(FileNotFoundError), hold_lock(tmp_path, "build", timeout_seconds=0):
            raise FileNotFoundError


def test_who_waits_learns_who_holds_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "REPEAT_SECONDS", 0.1)
    messages: list[str] = []
    with held_by_child(tmp_path) as child:
        with (
            pytest.raises(LockHeld, match="not free after 0 seconds") as caught,
            hold_lock(tmp_path, "build", timeout_seconds=0.45, on_wait=messages.append),
        ):
            pass
        assert f"held by process {child.pid} (`-c " in str(caught.value)
        assert len(messages) >= 3
        assert messages[0].startswith(f"Waiting for the lock `build`, held by process {child.pid}")
        assert " since 20" in messages[0]
        (tmp_path / "build.holder").write_bytes(b"")
        with (
            pytest.raises(LockHeld, match="it is held by another process"),
            hold_lock(tmp_path, "build", timeout_seconds=0),
        ):
            pass
        child.communicate("")


def test_a_lock_is_free_after_its_holder_is_killed(tmp_path: Path) -> None:
    waited: list[bool] = []
    with held_by_child(tmp_path) as child:
        timer = threading.Timer(0.3, child.kill)
        timer.start()
        with hold_lock(tmp_path, "build") as has_waited:
            waited.append(has_waited)
        timer.join()
    assert waited == [True]


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StorageFailed, match="Cannot create"),
        hold_lock(tmp_path / "file" / "locks", "build"),
    ):
        pass
    (tmp_path / "build.holder").mkdir()
    with pytest.raises(StorageFailed, match="cannot be used"), hold_lock(tmp_path, "build"):
        pass
