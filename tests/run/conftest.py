"""Homes that several tests begin with: lived through once, and copied for each of them.

Here: making and copying. Not here: what a night is (kept_nights).
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.run import Session
from tests.run.kept_nights import home

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
