"""`make fuzz`: schemathesis against a running sandbox, both surfaces, with credentials.

All checks in the phases examples, coverage and fuzzing, with a fixed seed. It fails on a 500, on a
status or schema that is not described, and on bad input that is accepted. The argument is the
number of examples of each operation.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.sandbox.running import API_KEY, started

AUTH = """
[auth.openapi.bearer]
bearer = "${TOKEN}"

[auth.openapi.apiKey]
api_key = "${SANDBOX_API_KEY}"
"""
OPTIONS = (
    "--checks=all",
    "--phases=examples,coverage,fuzzing",
    "--seed=7",
    "--continue-on-failure",
    "--generation-database=none",
    "--no-color",
)


def main(examples: int) -> int:
    """Run it in an empty folder; return its exit code."""
    program = str(Path(sys.executable).with_name("st"))
    with tempfile.TemporaryDirectory() as folder, started("--rate", "0") as running:
        (Path(folder) / "schemathesis.toml").write_text(AUTH, encoding="utf-8")
        environment = os.environ | {"TOKEN": running.token(), "SANDBOX_API_KEY": API_KEY}
        command = [program, "run", f"{running.url}/docs/openapi.json", *OPTIONS]
        command.append(f"--max-examples={examples}")
        return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
