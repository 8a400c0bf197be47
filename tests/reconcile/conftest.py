import pytest

from tests.publish.homes import OpenHome, Stores
from tests.reconcile.months import publish_closed, publish_months


@pytest.fixture
def books(open_home: OpenHome) -> Stores:
    """A home in which no month is closed."""
    return open_home(publish_months)


@pytest.fixture
def closed(open_home: OpenHome) -> Stores:
    """A home in which September is closed."""
    return open_home(publish_closed)
