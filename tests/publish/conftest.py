import pytest

from tests.publish.homes import OpenHome, Stores
from tests.publish.named import publish_names


@pytest.fixture
def named(open_home: OpenHome) -> Stores:
    """The home of `published`, with versions 2 and 3 that have records with a name."""
    return open_home(publish_names)
