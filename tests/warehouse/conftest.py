from pathlib import Path

import pytest

from pipelines.config.home import Home
from pipelines.warehouse.duckdb_file import DuckDBFiles


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


@pytest.fixture
def files(home: Home) -> DuckDBFiles:
    return DuckDBFiles(home)
