from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.publish.build import build
from tests.publish.homes import BEGIN, DAY, Reading, Stores, copy_home, read, usage
from tests.publish.named import add_named_versions


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stores = Stores.open(tmp_path_factory.mktemp("empty") / "home")
    stores.metadata.close()
    return stores.settings.home


@pytest.fixture(scope="session")
def published_home(tmp_path_factory: pytest.TempPathFactory, empty_home: Path) -> Path:
    stores = copy_home(empty_home, tmp_path_factory.mktemp("published") / "home")
    read(stores, Reading(usage(*range(1, 11))))
    build(stores)
    stores.metadata.close()
    return stores.settings.home


@pytest.fixture
def stores(tmp_path: Path, empty_home: Path) -> Iterator[Stores]:
    """A home without any scan."""
    opened = copy_home(empty_home, tmp_path / "home")
    yield opened
    opened.metadata.close()


@pytest.fixture
def published(tmp_path: Path, published_home: Path) -> Iterator[Stores]:
    """A home whose version 1 has the rows u1 to u10 of acme/usage."""
    opened = copy_home(published_home, tmp_path / "home", BEGIN + DAY)
    yield opened
    opened.metadata.close()


@pytest.fixture
def named(stores: Stores) -> Stores:
    """A home whose versions 2 and 3 have records with a name."""
    add_named_versions(stores)
    return stores
