"""Runs `partner-sync` in this process."""

import json
from typing import Any

from typer.testing import CliRunner, Result

from pipelines.cli.main import app
from pipelines.config.home import Home


class Cli:
    """Runs `partner-sync` on one home."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def __call__(self, *arguments: str, code: int | None = None) -> Result:
        """Run a command; check its exit code where one is given."""
        environment = {"PARTNER_SYNC_HOME": str(self.home.root), "TERM": "dumb"}
        result = CliRunner().invoke(app, arguments, env=environment)
        if code is not None:
            assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    def json(self, *arguments: str, code: int | None = None) -> Any:
        """Run a command with `--json`; return what it prints."""
        return json.loads(self(*arguments, "--json", code=code).stdout)
