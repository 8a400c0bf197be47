"""What pytest has collected, for the pages that name tests; trials are among it."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EVERY = pytest.StashKey[frozenset[str]]()


@pytest.hookimpl(tryfirst=True)  # before those are taken out that will not run
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the names of all tests, where all were asked for."""
    asked = {Path(config.invocation_params.dir, each).resolve() for each in config.args}
    if ROOT / "tests" in asked or ROOT in asked:
        config.stash[EVERY] = frozenset(each.nodeid for each in items)
