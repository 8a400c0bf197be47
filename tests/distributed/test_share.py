"""Groups of processes that are held to a share of a processor, by what they really use.

Upper bounds are narrow, lower ones loose: a busy machine gives less than a share allows. Not here:
what workers with such a share make of a night (rehearsal).
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.distributed import costs
from tests.distributed.share import limited

SHARE, NARROW = 0.5, 0.01
TIME = 1.5  # seconds that are looked at
MOST, LEAST = 0.7, 0.1  # of a processor, that SHARE comes to in so short a time
UNHELD = 0.8  # of a processor: more than is ever allowed here
PATIENCE = 60  # seconds, on a busy machine

ALONE = "while True: pass"
WITH_A_CHILD = "os.fork()\nwhile True: pass"
# Born when the group is held already.
WITH_A_LATER_CHILD = "time.sleep(0.3)\nos.fork()\nwhile True: pass"
RESTING = "os.fork()\nos.read(0, 1)\nwhile True: pass"  # each of the two until it is told
OF_SHORT_LIVES = """
def burn():
    end = time.process_time() + 0.05
    while time.process_time() < end: pass
    os._exit(0)
while True:
    os.fork() or burn()
    os.wait()
"""


@contextmanager
def group(program: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program of Python as leader of a group of its own, until the end of the block."""
    begun = f"import os, sys, time\nprint('begun', flush=True)\n{program}"
    process = subprocess.Popen(
        [sys.executable, "-c", begun],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdin
    assert process.stdout
    try:
        assert process.stdout.readline() == "begun\n"
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()


def rate(process: subprocess.Popen[str], seconds: float) -> float:
    """Return what a group uses of a processor for some time."""
    began, before = time.monotonic(), costs.processor_seconds({"group": process.pid})
    time.sleep(seconds)
    after, ended = costs.processor_seconds({"group": process.pid}), time.monotonic()
    return (after["group"] - before["group"]) / (ended - began)


def freed(process: subprocess.Popen[str]) -> bool:
    """Tell whether a group comes to use more than any share of these tests."""
    end = time.monotonic() + PATIENCE
    while (found := rate(process, 0.3)) < UNHELD and time.monotonic() < end:
        pass
    return found >= UNHELD


def failing_with(process: subprocess.Popen[str]) -> None:
    """Fail while a group is held."""
    with limited([process.pid], NARROW):
        time.sleep(TIME / 3)
        raise LookupError("of the block")


@pytest.mark.parametrize("program", [ALONE, WITH_A_CHILD, WITH_A_LATER_CHILD, OF_SHORT_LIVES])
def test_a_group_uses_its_share_and_no_more(program: str) -> None:
    with group(program) as process, limited([process.pid], SHARE):
        assert LEAST < rate(process, TIME) < MOST


def test_each_of_several_groups_has_a_share() -> None:
    with group(WITH_A_CHILD) as one, group(WITH_A_CHILD) as other:
        before = costs.processor_seconds({"one": one.pid, "other": other.pid})
        began = time.monotonic()
        with limited([one.pid, other.pid], SHARE):
            time.sleep(TIME)
        passed = time.monotonic() - began
        after = costs.processor_seconds({"one": one.pid, "other": other.pid})
    for name, used in after.items():
        assert LEAST < (used - before[name]) / passed < MOST


def test_who_rested_has_saved_nothing_up() -> None:
    with group(RESTING) as process, limited([process.pid], SHARE):
        time.sleep(TIME)
        assert process.stdin
        process.stdin.write("go")
        process.stdin.flush()
        assert LEAST < rate(process, TIME) < MOST


def test_a_group_is_free_after_the_block() -> None:
    with group(WITH_A_CHILD) as process:
        with limited([process.pid], NARROW):
            assert rate(process, TIME) < SHARE
        assert freed(process)


def test_a_group_is_free_after_an_error_in_the_block() -> None:
    with group(WITH_A_CHILD) as process:
        with pytest.raises(LookupError, match="of the block"):
            failing_with(process)
        assert freed(process)


def test_a_group_that_ends_meanwhile_is_no_error() -> None:
    with group(ALONE) as other:
        ended = subprocess.Popen([sys.executable, "-c", ALONE], start_new_session=True)
        with limited([ended.pid, other.pid], SHARE):
            time.sleep(TIME / 5)
            ended.kill()
            assert ended.wait(PATIENCE) == -signal.SIGKILL
            assert LEAST < rate(other, TIME) < MOST
        with limited([ended.pid], SHARE):
            time.sleep(TIME / 5)
