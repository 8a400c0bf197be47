from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.publish.homes import Stores


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    opened = Stores.open(tmp_path / "home")
    yield opened
    opened.metadata.close()
