"""Sessions on homes of made-up records."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.ledger import publish_books
from tests.publish.conftest import empty_home, stores
from tests.publish.homes import Stores, make_home, opened_copy
from tests.publish.named import session_of

__all__ = ["empty_home", "session_of", "stores"]


@pytest.fixture(scope="session")
def books_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_home(tmp_path_factory.mktemp("books"), publish_books)


@pytest.fixture(scope="session")
def unchanged_books(books_template: Path) -> Iterator[Stores]:
    """The home of `books` for tests that change nothing."""
    opened = Stores.open(books_template)
    yield opened
    opened.metadata.close()


@pytest.fixture
def books(tmp_path: Path, books_template: Path) -> Iterator[Stores]:
    """A home with breaks of two partners in two currencies, one of them uncertain."""
    with opened_copy(books_template, tmp_path, days=10) as opened:
        yield opened
