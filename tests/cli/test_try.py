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
from pipelines.core.files import write_durably
from tests.cli.conftest import Cli
from tests.homes import rows
from tests.reconcile.books import SANDBOX_MAPPING

PROGRAM = [sys.executable, "-m", "pipelines.cli.main"]


def test_answers_are_exact(synced: Cli) -> None:
    write_durably(synced.home.mapping_file, SANDBOX_MAPPING.replace("paid", "open").encode())
    synced("versions", "build")
    *_, (question, frame) = demo.answers(synced.home.link)
    assert question == "What should be looked at first?"
    sql = "SELECT max(abs(difference)) FROM finance.open_breaks WHERE severity = 'high'"
    ((largest,),) = rows(synced.home, sql)
    assert len(frame) == 5
    assert all(type(value) is Decimal for value in frame["difference"])
    assert abs(frame["difference"][0]) == largest
    assert str(largest) in frame.to_string(index=False)


def test_a_folder_that_is_not_of_a_demo_is_not_emptied(empty: Cli, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    result = empty("demo", f"--home={tmp_path}", code=2)
    assert "was not made by a demo, so it is not emptied" in result.stderr
    assert (tmp_path / "thesis.txt").exists()


@pytest.mark.long
def test_the_demo_syncs_the_sandbox_and_says_how_long_it_took(tmp_path: Path) -> None:
    old = tmp_path / "demo" / "old"  # of an earlier demo
    old.mkdir(parents=True)
    old.with_name(demo.MARKER).touch()
    command = [*PROGRAM, "demo", f"--home={old.parent}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not old.exists()
    assert len(re.findall(r"demo +\w+ +[\d,]+ +\d+ +0 +COMPLETE", done.stdout)) == 3
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
