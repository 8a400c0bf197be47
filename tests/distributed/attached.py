"""A night's warehouse as an analyst attaches it: the published file, or the lake's newest snapshot.

Here: plain DuckDB, and for a lake the very statements of docs/analysts.md, with the extensions of
the Python packages. Not here: what is asked of it (comparison), and our own way into the lake
(pipelines.warehouse).
"""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import duckdb

PAGE = Path(__file__).parents[2] / "docs" / "analysts.md"
EXTENSIONS = {"postgres": "postgres_scanner"}  # packages that are not called as the extension
TOLD = "ducklake:postgres:dbname=lake host=db.example.com user=analyst"


def attach(database: duckdb.DuckDBPyConnection, home: Path, environment: Mapping[str, str]) -> str:
    """Attach what is published; return the name of the catalog."""
    lake = environment.get("PARTNER_SYNC_WAREHOUSE")
    file = home / "warehouse.duckdb"
    if lake is None or file.exists():
        database.execute(f"ATTACH '{file}' AS here (READ_ONLY)")
        return "here"
    for statement in recipe(environment):
        database.execute(statement)
        if statement.startswith("ATTACH"):
            return "lake"
    raise AssertionError("docs/analysts.md attaches no lake")


def recipe(environment: Mapping[str, str]) -> list[str]:
    """Return the page's statements for DuckDB, with the addresses and keys of an environment."""
    endpoint = environment["AWS_ENDPOINT_URL"].removeprefix("http://")
    ours = {
        "KEY_ID '…'": f"KEY_ID '{environment['AWS_ACCESS_KEY_ID']}'",
        "SECRET '…'": f"SECRET '{environment['AWS_SECRET_ACCESS_KEY']}'",
        "ENDPOINT 's3.example.com'": f"ENDPOINT '{endpoint}', USE_SSL false",
        TOLD: environment["PARTNER_SYNC_WAREHOUSE"],
    }
    text = statements()[0]
    for placeholder, value in ours.items():
        assert placeholder in text, f"docs/analysts.md does not say {placeholder}"
        text = text.replace(placeholder, value)
    text = re.sub(r"INSTALL (\w+)", lambda found: f"LOAD '{_extension(found[1])}'", text)
    return [each.strip() for each in text.split(";") if each.strip()]


def statements() -> list[str]:
    """Return the page's blocks of SQL about the lake: DuckDB's, then PostgreSQL's."""
    text = PAGE.read_text(encoding="utf-8").partition("\n## The lake\n")[2].partition("\n## ")[0]
    return re.findall(r"```sql\n(.*?)```", text, re.DOTALL)


def _extension(name: str) -> Path:
    package = f"duckdb_extension_{EXTENSIONS.get(name, name)}"
    found = find_spec(package)
    assert found, f"the package {package} is not installed"
    folder = Path(next(iter(found.submodule_search_locations or ())))
    file = f"{EXTENSIONS.get(name, name)}.duckdb_extension"
    return folder / "extensions" / f"v{duckdb.__version__}" / file
