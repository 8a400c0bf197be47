"""One metadata database for all simulations of a worker; each has an actor of its own."""

import asyncio
import inspect
import socket
import subprocess
from collections.abc import Iterator
from itertools import count

import pytest

from pipelines.metadata.processes import _start_of
from tests.rate_limit.simulated import VirtualClock, VirtualLoop, VirtualMetadata, World

ACTORS = count(1)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutines in virtual time."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualMetadata]:
    opened = VirtualMetadata.open(tmp_path_factory.mktemp("rate_limit") / "metadata.db")
    assert isinstance(opened, VirtualMetadata)
    yield opened
    opened.close()


@pytest.fixture
def world(metadata: VirtualMetadata) -> World:
    """Give an actor that nobody has used, and a clock that nobody has set."""
    return World(metadata, f"actor {next(ACTORS)}", VirtualClock())


def name_of(owner: subprocess.Popen[bytes]) -> str:
    """Return a process as the slots name it."""
    return f"{socket.gethostname()}:{owner.pid}:{_start_of(owner.pid)}"


@pytest.fixture
def owners() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Give four processes; the test may kill them."""
    started = [subprocess.Popen(["/bin/sleep", "1000"]) for _ in range(4)]
    yield started
    for each in started:
        each.kill()
        each.wait()
