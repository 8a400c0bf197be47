"""What tests of several machines are given: databases, buckets, the variables that lead there."""

from collections.abc import Callable

import pytest

from tests.distributed import servers


@pytest.fixture
def postgres() -> Callable[[], str]:
    """Make databases of the test's own: each call returns the URL of a new, empty one."""
    return servers.database


@pytest.fixture
def object_store(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of a bucket of the test's own; the environment says where and who asks."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", servers.object_store())
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return f"s3://{servers.bucket()}"
