"""A home in which no month is closed; a copy for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.publish.homes import Stores, make_home, opened_copy
from tests.reconcile.months import publish_months


@pytest.fixture(scope="session")
def open_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_home(tmp_path_factory.mktemp("open"), publish_months)


@pytest.fixture
def books(tmp_path: Path, open_home: Path) -> Iterator[Stores]:
    """A home in which no month is closed."""
    with opened_copy(open_home, tmp_path, days=3) as stores:
        yield stores
