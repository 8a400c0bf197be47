"""Runs `partner-sync` in this process, on homes that are copies of one that was synced."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pipelines.cli.main import program
from pipelines.config.home import Home
from tests.homes import make_home
from tests.sandbox.running import Running

CONTROL = {*map(chr, range(32))} - {"\n"}


class Cli:
    """Runs `partner-sync` on one home."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def __call__(self, *arguments: str, code: int = 0) -> Result:
        """Run a command; check its exit code."""
        environment = {"PARTNER_SYNC_HOME": str(self.home.root), "TERM": "dumb"}
        result = CliRunner().invoke(program.root, arguments, env=environment)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run a command with `--json`; return what it prints."""
        printed = self(*arguments, "--json", code=code).stdout
        assert printed.isascii()
        assert not set(printed) & CONTROL
        return json.loads(printed)


@pytest.fixture
def synced(synced: Home) -> Cli:
    """Commands on a home with version 1 of all lists."""
    return Cli(synced)


@pytest.fixture
def fresh(sandbox: Running, tmp_path: Path) -> Cli:
    """Commands on a home that was never synced."""
    return Cli(make_home(tmp_path / "home", sandbox))


@pytest.fixture
def empty(tmp_path: Path) -> Cli:
    """Commands on a home that does not exist."""
    return Cli(Home(tmp_path / "home"))
