"""`partner-sync` as its own process, begun as a user begins it: what no fork of ours can show."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.program import PROGRAM, clean


def test_it_is_installed_loads_only_what_it_needs_and_ends_with_its_code(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", PROGRAM, "check"],
        env=clean({"PARTNER_SYNC_HOME": str(tmp_path)}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    *loaded, said = ended.stderr.splitlines()
    assert ended.returncode == 2
    assert said.startswith("error ")
    assert ended.stdout == ""
    modules = {line.rpartition("|")[2].strip() for line in loaded}
    assert "duckdb" in modules
    assert not modules & {"pandas", "dagster", "fastapi"}


def test_ctrl_c_while_it_loads_is_no_traceback() -> None:
    """Python tells each import when it is over; the first of them is taken for a sign of life."""
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "pipelines.cli", "version"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    ) as process:
        assert process.stderr is not None
        assert any("typer" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.endswith("interrupted: nothing was begun\n")
    assert "Traceback" not in err
