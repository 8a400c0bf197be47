from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.config.connections import add_connection
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
    connection = {"surface": "merchant", "base_url": "https://example.com", "secret": "A_KEY"}
    add_connection(stores.settings.places.connections_file, "acme", connection)
    read(stores, Reading(usage(*range(1, 11))))
    build(stores)
    stores.metadata.close()
    return stores.settings.home


@pytest.fixture(scope="session")
def named_home(tmp_path_factory: pytest.TempPathFactory, published_home: Path) -> Path:
    folder = tmp_path_factory.mktemp("named") / "home"
    stores = copy_home(published_home, folder, BEGIN + DAY)
    add_named_versions(stores)
    stores.metadata.close()
    return folder


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
def named(tmp_path: Path, named_home: Path) -> Iterator[Stores]:
    """The same, with versions 2 and 3 that have records with a name."""
    opened = copy_home(named_home, tmp_path / "home", BEGIN + 3 * DAY)
    yield opened
    opened.metadata.close()
