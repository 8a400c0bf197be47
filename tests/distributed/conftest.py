"""What tests of several machines are given: databases, buckets, the variables that lead there."""

from collections.abc import Callable

import pytest

from tests.distributed import places


@pytest.fixture
def postgres() -> Callable[[], str]:
    """Make databases of the test's own: each call returns the URL of a new, empty one."""
    return places.database


@pytest.fixture
def object_store(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of a bucket of the test's own; the environment says where and who asks."""
    for name, value in places.object_store().environment.items():
        monkeypatch.setenv(name, value)
    return places.bucket()
