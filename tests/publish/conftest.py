from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.publish.homes import Stores, copy_home, template_home


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template_home(tmp_path_factory.mktemp("empty") / "home", publish=False)


@pytest.fixture(scope="session")
def published_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template_home(tmp_path_factory.mktemp("published") / "home", publish=True)


@pytest.fixture
def stores(tmp_path: Path, empty_home: Path) -> Iterator[Stores]:
    """A home without any scan."""
    opened = copy_home(empty_home, tmp_path / "home")
    yield opened
    opened.metadata.close()


@pytest.fixture
def published(tmp_path: Path, published_home: Path) -> Iterator[Stores]:
    """A home whose version 1 has the rows u1 to u10 of acme/usage."""
    opened = copy_home(published_home, tmp_path / "home")
    yield opened
    opened.metadata.close()
