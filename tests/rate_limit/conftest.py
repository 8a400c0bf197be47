"""One metadata database for all simulations of a worker; each has an actor of its own."""

import socket
import subprocess
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from pipelines.metadata.engine import _start_of
from tests.rate_limit.simulated import VirtualClock, VirtualMetadata, World

ACTORS = count(1)


@pytest.fixture(scope="session")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualMetadata]:
    opened = VirtualMetadata.open(tmp_path_factory.mktemp("rate_limit") / "metadata.db")
    assert isinstance(opened, VirtualMetadata)
    opened.clock = VirtualClock()
    yield opened
    opened.close()


@pytest.fixture
def new_world(metadata: VirtualMetadata) -> Callable[[], World]:
    """Make an actor that nobody has used, and a clock that nobody has set."""

    def make() -> World:
        metadata.clock, metadata.interruption = VirtualClock(), 0.0
        return World(metadata, f"actor {next(ACTORS)}")

    return make


@pytest.fixture
def world(new_world: Callable[[], World]) -> World:
    return new_world()


class Owner:
    """A real process that lives until it is killed, so that its rows have an owner."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(["/bin/sleep", "1000"])
        start = _start_of(self._process.pid)
        self.name = f"{socket.gethostname()}:{self._process.pid}:{start}"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="session")
def owners() -> Iterator[list[Owner]]:
    """Give four processes that live throughout."""
    started = [Owner() for _ in range(4)]
    yield started
    for each in started:
        each.kill()


@pytest.fixture
def mortal() -> Iterator[Owner]:
    """Give one process that the test may kill."""
    owner = Owner()
    yield owner
    owner.kill()
