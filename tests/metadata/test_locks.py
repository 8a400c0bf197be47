"""Locks: one holder at a time, who it is, and what remains of a killed one."""

import logging
import threading
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen
from sys import executable

import pytest

from pipelines.core.errors import LockHeld, StorageFailed
from pipelines.metadata.locks import Locks, hold_lock

HOLD = """
import sys
from pathlib import Path
from pipelines.metadata.locks import Locks, hold_lock
with hold_lock(Locks(Path(sys.argv[1])), "build"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_holds_a_lock_and_who_waits_learns_which(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pipelines")

    locks = Locks(tmp_path)

    def hold(timeout_seconds: float = 3600) -> bool:
        build = partial(hold_lock, locks, "build", repeat_seconds=0.1)
        with build(timeout_seconds=timeout_seconds) as has_waited, hold_lock(locks, "other"):
            return has_waited

    assert [hold(), hold()] == [False, False]
    command = [executable, "-c", HOLD, str(tmp_path)]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(LockHeld, match="not free after 0 seconds") as caught:
            hold(0.45)
        assert f"held by process {child.pid} (`-c " in str(caught.value)
        messages = caplog.messages
        assert len(messages) >= 3
        assert messages[0].startswith(f"Waiting for the lock `build`, held by process {child.pid}")
        assert " since 20" in messages[0]
        (tmp_path / "build.holder").write_bytes(b"")
        with pytest.raises(LockHeld, match="it is held by another process"):
            hold(0)
        threading.Timer(0.3, child.kill).start()
        assert hold()  # it is free after its holder was killed
    for _ in range(2):  # and after an error
        with pytest.raises(FileNotFoundError), hold_lock(locks, "build", timeout_seconds=0):
            raise FileNotFoundError


@pytest.mark.parametrize("folder", ["file/a", ""])
def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "build.holder").mkdir()
    path = tmp_path / (folder or "build.holder")
    with (
        pytest.raises(StorageFailed, match=rf"{path} cannot be written"),
        hold_lock(Locks(tmp_path / folder), "build"),
    ):
        pass
