"""The folders of a home, with the modes that keep ours ours."""

import multiprocessing
import os
import stat
import tempfile
from pathlib import Path

import pytest

from pipelines.errors import ConfigurationError
from pipelines.settings import Home

FORK = multiprocessing.get_context("fork")
MODES = {
    "": 0o755,
    "archive": 0o700,
    "state": 0o700,
    "work": 0o700,
    "config": 0o700,
    "published": 0o755,
}


def modes(root: Path) -> dict[str, int]:
    return {name: stat.S_IMODE((root / name).stat().st_mode) for name in MODES}


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_home_is_made_with_its_modes_whatever_the_mask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        Home(tmp_path / "home").prepare()
    finally:
        os.umask(before)
    assert modes(tmp_path / "home") == MODES
    assert {each.name for each in (tmp_path / "home").iterdir()} == set(MODES) - {""}


def test_what_was_loosened_is_put_right_and_a_root_that_was_there_keeps_its_mode(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o750)
    Home(tmp_path).prepare()
    (tmp_path / "archive").chmod(0o755)
    (tmp_path / "config" / "settings.toml").write_text("rate = 2\n")
    Home(tmp_path).prepare()
    assert modes(tmp_path) == MODES | {"": 0o750}
    assert (tmp_path / "config" / "settings.toml").read_text() == "rate = 2\n"


@pytest.mark.parametrize("name", ["config", "archive"])
def test_only_a_config_that_we_may_not_write_keeps_its_mode(name: str) -> None:
    """Root may write anything: where tests run as root, this one steps down first."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        home.chmod(0o777)
        (home / name).mkdir()
        (home / name).chmod(0o555)
        process = FORK.Process(target=prepare_as_nobody, args=(home,))
        process.start()
        process.join()
        refused = name == "archive" and os.getuid() == 0
        assert process.exitcode == refused
        kept = refused or name == "config"
        assert stat.S_IMODE((home / name).stat().st_mode) == (0o555 if kept else 0o700)


def prepare_as_nobody(root: Path) -> None:
    if os.getuid() == 0:
        os.setuid(65534)
    Home(root).prepare()


@pytest.mark.parametrize("blocked", ["home", "home/archive"])
def test_a_home_that_cannot_be_is_told_in_words(tmp_path: Path, blocked: str) -> None:
    (tmp_path / blocked).parent.mkdir(exist_ok=True)
    (tmp_path / blocked).write_text("a file is in the way")
    for root in (tmp_path / "home", tmp_path / "home" / "archive" / "deeper"):
        with pytest.raises(ConfigurationError, match=r"^home /.*; set PARTNER_SYNC_HOME to "):
            Home(root).prepare()


def test_the_link_lies_beside_what_it_points_to(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.link == tmp_path / "warehouse.duckdb"
    assert home.published.parent == home.link.parent
