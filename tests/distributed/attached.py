"""A night's warehouse as an analyst attaches it: the published file, or the lake's newest snapshot.

Here: plain DuckDB, with the extensions of the Python packages. Not here: what is asked of it
(comparison), and our own way into the lake (pipelines.warehouse).
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import duckdb

EXTENSIONS = ("postgres_scanner", "ducklake", "httpfs")
SEEN = "published"  # the schema of the catalog that analysts attach


def attach(database: duckdb.DuckDBPyConnection, home: Path, environment: Mapping[str, str]) -> str:
    """Attach what is published; return the name of the catalog."""
    lake = environment.get("PARTNER_SYNC_WAREHOUSE")
    file = home / "warehouse.duckdb"
    if lake is None or file.exists():
        database.execute(f"ATTACH '{file}' AS here (READ_ONLY)")
        return "here"
    for name in EXTENSIONS:
        database.execute(f"LOAD '{_extension(name)}'")
    endpoint = environment["AWS_ENDPOINT_URL"].removeprefix("http://")
    database.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID '{environment['AWS_ACCESS_KEY_ID']}', "
        f"SECRET '{environment['AWS_SECRET_ACCESS_KEY']}', "
        f"ENDPOINT '{endpoint}', URL_STYLE 'path', USE_SSL false)"
    )
    data = environment["PARTNER_SYNC_LAKE_DATA"]
    database.execute(
        f"ATTACH '{lake}' AS lake (READ_ONLY, METADATA_SCHEMA '{SEEN}', DATA_PATH '{data}')"
    )
    return "lake"


def _extension(name: str) -> Path:
    found = find_spec(f"duckdb_extension_{name}")
    assert found, f"the package of {name} is not installed"
    folder = Path(next(iter(found.submodule_search_locations or ())))
    return folder / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
