"""A process in a container: a number without a name, and no home folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.core.person import user_name

NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")
PRINT = (
    "import os, pwd; from pipelines.core.person import user_name; "
    "from pipelines.config.home import Home; os.setuid(23456); "
    "print(user_name(), flush=True); Home.from_environment()"
)


def test_a_user_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", " ann ")
    assert user_name() == "ann"
    monkeypatch.setenv("LOGNAME", "ann\udce9")
    assert user_name() == f"uid {os.getuid()}"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user without a name")
def test_a_user_without_a_name_is_a_number_and_has_no_home() -> None:
    root = Path(__file__).parents[2]
    left = {name: text for name, text in os.environ.items() if name not in {*NAMES, "HOME"}}
    left.pop("PARTNER_SYNC_HOME", None)
    command = [sys.executable, "-c", PRINT]
    ran = subprocess.run(
        command, cwd=root, env=left, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout == "uid 23456\n"
    assert "There is no home: PARTNER_SYNC_HOME is not set." in ran.stderr
