"""Homes that several tests begin with: lived through once, and copied for each of them.

Here: making and copying. Not here: what a night is (kept_nights).
"""

import os
import shutil
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from pipelines.cli import sandbox
from pipelines.run import Session
from pipelines.settings import mapping
from tests.end_to_end.stand import synced
from tests.run.kept_nights import home
from tests.run.months import closed, ended
from tests.run.months import home as month_home
from tests.sandbox.running import sandboxed
from tests.virtual import Haste

PLANTED = ("--rate=0", "--partners=80", "--usage=1200", "--billing=120", "--plant")
SHIPPED = files("pipelines.settings") / "sandbox.toml"

Live = Callable[[Session], None]
Begun = Callable[[Live], Path]


@pytest.fixture(scope="session")
def made() -> dict[Live, Path]:
    """Name the homes that were lived through; a night costs half a second."""
    return {}


@pytest.fixture
def begun(
    made: dict[Live, Path], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Begun:
    """Return what gives the test a home of its own in which those nights were lived."""

    def copied(live: Live) -> Path:
        if live not in made:
            made[live] = tmp_path_factory.mktemp("lived") / "home"
            with home(made[live]) as session:
                live(session)
        to = tmp_path / f"home-{len(list(tmp_path.iterdir()))}"
        return Path(shutil.copytree(made[live], to, symlinks=True))

    return copied


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home synced once with a sandbox's data, planted errors in it, and its mapping."""
    made, before = tmp_path_factory.mktemp("planted") / "home", dict(os.environ)
    (made / "config").mkdir(parents=True)
    (made / "config" / mapping.FILE).write_text(SHIPPED.read_text())
    try:
        with sandboxed(*PLANTED) as service:
            sandbox.point_at(service)
            assert synced(made, Haste().clock, "partners", "usage", "billing").version
    finally:
        os.environ.clear()
        os.environ.update(before)
    return made


@pytest.fixture(scope="session")
def months(tmp_path_factory: pytest.TempPathFactory) -> dict[Live, Path]:
    """Live through January twice: read to its end, and closed as well."""
    lived: dict[Live, Path] = {
        live: tmp_path_factory.mktemp("months") / "home" for live in (ended, closed)
    }
    for live, root in lived.items():
        with month_home(root) as session:
            live(session)
    return lived


@pytest.fixture
def month(months: dict[Live, Path], tmp_path: Path) -> Begun:
    """Return what gives the test a home of its own that begins with one of them."""
    return lambda live: Path(shutil.copytree(months[live], tmp_path / "home", symlinks=True))
