"""Fixtures: the sandboxes that these tests share, each started once and only when asked for.

Here: one without a limiter, one as it comes, one whose window never ends, one whose window is
short, one behind HTTPS. Not here: calling them (calling).
"""

from collections.abc import Iterator

import httpx
import pytest

from tests.interface.calling import Limited, Surfaces, crowd
from tests.sandbox.merchants import KEYS, SECRETS
from tests.sandbox.running import CLIENTS, Running, clients_file, started

SMALL = ("--partners", "25", "--usage", "1234", "--billing", "234")


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surfaces]:
    """Both surfaces without a limiter: everybody of CLIENTS and KEYS may call."""
    file = clients_file(tmp_path_factory.mktemp("whole"), CLIENTS + KEYS)
    with (
        started("--rate", "0", *SMALL, "--clients", str(file)) as running,
        running.client(running.token("whole", "s-whole")) as bearer,
        running.client(key=SECRETS["admin"]) as keyed,
    ):
        yield Surfaces(running, bearer, keyed)


@pytest.fixture
def undone(whole: Surfaces) -> Iterator[Running]:
    """The same sandbox, for one test's faults."""
    yield whole.running
    whole.running.reset()


@pytest.fixture(scope="session")
def nobody(whole: Surfaces) -> Iterator[httpx.Client]:
    """A client of ``whole`` without credentials."""
    with whole.running.client() as client:
        yield client


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of the crowd's credentials."""
    return str(clients_file(tmp_path_factory.mktemp("crowd"), crowd()))


@pytest.fixture(scope="session")
def untouched(many: str) -> Iterator[Limited]:
    """The limits as they are when nobody says anything about them."""
    with started(*SMALL, "--clients", many) as running:
        yield Limited(running)


@pytest.fixture(scope="session")
def slow(many: str) -> Iterator[Limited]:
    """A window so long that nothing leaves it."""
    with started("--window", "3600", *SMALL, "--clients", many) as running:
        yield Limited(running)


@pytest.fixture(scope="session")
def quick(many: str) -> Iterator[Limited]:
    """A window so short that a test can wait for its end."""
    with started("--rate", "5", "--window", "0.4", *SMALL, "--clients", many) as running:
        yield Limited(running)


@pytest.fixture(scope="session")
def secure() -> Iterator[Running]:
    """A sandbox behind HTTPS."""
    with started("--tls", "--rate", "0", *SMALL) as running:
        yield running
