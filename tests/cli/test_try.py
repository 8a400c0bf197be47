"""`demo` and `sandbox`: the whole job on a local copy of the service."""

import os
import re
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from pipelines.app import demo
from pipelines.config.home import Home
from tests.cli.conftest import Cli

PROGRAM = [sys.executable, "-m", "pipelines.cli.main"]


def test_a_folder_that_is_not_of_a_demo_is_not_emptied(empty: Cli, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    result = empty("demo", f"--home={tmp_path}", code=2)
    assert "was not created by a demo, so it is not emptied" in result.stderr
    assert (tmp_path / "thesis.txt").exists()


@pytest.mark.long
def test_the_demo_syncs_the_sandbox_and_says_how_long_it_took(tmp_path: Path) -> None:
    old = tmp_path / "demo" / "old"  # of an earlier demo
    old.mkdir(parents=True)
    old.with_name(demo.MARKER).touch()
    command = [*PROGRAM, "demo", f"--home={old.parent}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not old.exists()
    *_, (question, frame) = demo.answers(Home(old.parent))
    assert question == "Which breaks are the most urgent?"
    assert [type(value) for value in frame["difference"]] == [Decimal] * 5
    assert all(str(value) in done.stdout for value in frame["difference"])
    row = r"demo +\w+ +[\d,]+ +[\d,]+ +0 +0 +\d+ +0 +COMPLETE"  # all of its rows are new
    assert len(re.findall(row, done.stdout)) == 3
    assert all(question in done.stdout for question in demo.QUESTIONS)
    assert re.search(r"The demo took \d+ seconds\.\n$", done.stdout)


@pytest.mark.long
def test_the_sandbox_serves_until_it_is_stopped() -> None:
    command, own = [*PROGRAM, "sandbox", "--port=0", "--usage=1"], {"SANDBOX_CLIENT_SECRET": "a"}
    pipe, environment = subprocess.PIPE, os.environ | own
    with subprocess.Popen(command, stdout=pipe, text=True, env=environment) as process:
        assert process.stdout
        assert process.stdout.readline().startswith("sandbox ready: http://127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
