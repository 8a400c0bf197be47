"""Sessions on homes of made-up records."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.app.session import AppSession
from pipelines.core.text import Redactor
from tests.app.ledger import publish_books
from tests.publish.conftest import empty_home, stores
from tests.publish.homes import BEGIN, DAY, Stores, copy_home

__all__ = ["empty_home", "stores"]


def session_of(stores: Stores) -> AppSession:
    fields = (stores.settings, stores.metadata, stores.archive, stores.warehouse, stores.clock)
    return AppSession(*fields, Redactor())


@pytest.fixture(scope="session")
def books_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stores = Stores.open(tmp_path_factory.mktemp("books") / "home")
    publish_books(stores)
    stores.metadata.close()
    return stores.settings.home


@pytest.fixture(scope="session")
def unchanged_books(books_template: Path) -> Iterator[Stores]:
    """The home of `books` for tests that change nothing."""
    opened = Stores.open(books_template)
    yield opened
    opened.metadata.close()


@pytest.fixture
def books(tmp_path: Path, books_template: Path) -> Iterator[Stores]:
    """A home with breaks of two partners in two currencies, one of them uncertain."""
    opened = copy_home(books_template, tmp_path / "home", BEGIN + 10 * DAY)
    yield opened
    opened.metadata.close()
