"""A home of made-up records."""

import pytest

from tests.app.ledger import publish_books
from tests.publish.homes import OpenHome, Stores


@pytest.fixture
def books(open_home: OpenHome) -> Stores:
    """A home with breaks of two partners in two currencies, one of them uncertain."""
    return open_home(publish_books)
