from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.config.connections import add_connection
from pipelines.publish.build import build
from tests.publish.homes import Reading, Stores, make_home, opened_copy, read, usage
from tests.publish.named import add_named_versions

CONNECTION = {"surface": "merchant", "base_url": "https://example.com", "secret": "A_KEY"}


def publish_ten(stores: Stores) -> None:
    add_connection(stores.settings.places.connections_file, "acme", CONNECTION)
    read(stores, Reading(usage(*range(1, 11))))
    build(stores)


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_home(tmp_path_factory.mktemp("empty"), repr)


@pytest.fixture(scope="session")
def published_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_home(tmp_path_factory.mktemp("published"), publish_ten)


@pytest.fixture(scope="session")
def named_home(tmp_path_factory: pytest.TempPathFactory, published_home: Path) -> Path:
    with opened_copy(published_home, tmp_path_factory.mktemp("named"), days=1) as stores:
        add_named_versions(stores)
    return stores.settings.home


@pytest.fixture
def stores(tmp_path: Path, empty_home: Path) -> Iterator[Stores]:
    """A home without any scan."""
    with opened_copy(empty_home, tmp_path) as opened:
        yield opened


@pytest.fixture
def published(tmp_path: Path, published_home: Path) -> Iterator[Stores]:
    """A home whose version 1 has the rows u1 to u10 of acme/usage."""
    with opened_copy(published_home, tmp_path, days=1) as opened:
        yield opened


@pytest.fixture
def named(tmp_path: Path, named_home: Path) -> Iterator[Stores]:
    """The same, with versions 2 and 3 that have records with a name."""
    with opened_copy(named_home, tmp_path, days=3) as opened:
        yield opened
