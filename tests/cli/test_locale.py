"""Terminals that know fewer characters than the data, and arguments that are no text."""

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import Cli

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def run(cli: Cli, *arguments: bytes | str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own."""
    environment = os.environ | {"PARTNER_SYNC_HOME": str(cli.home.root)} | variables
    command = [sys.executable, "-m", "pipelines.cli.main", *arguments]
    ran = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    assert b"Traceback" not in ran.stderr
    return ran


@pytest.mark.long
def test_text_in_an_argument_is_read_in_every_locale(fresh: Cli) -> None:
    name = "日本商事"
    asked = run(fresh, "sync", "--stream", name.encode(), **ASCII)
    assert asked.returncode == 2
    # Typer writes messages in UTF-8 where the encoding is ASCII.
    assert f"There is no stream `{name}` in acme." in asked.stderr.decode()


def test_an_argument_that_is_not_text_is_named(fresh: Cli) -> None:
    asked = run(fresh, "sync", "--stream", b"caf\xe9")
    assert asked.returncode == 2
    assert b"Argument 3, `caf\\udce9`, is not UTF-8 text." in asked.stderr
