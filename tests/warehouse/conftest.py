from pathlib import Path

import pytest

from pipelines.config.home import Home
from pipelines.warehouse.duckdb_file import Warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(Home(tmp_path / "home").prepare())
