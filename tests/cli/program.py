"""`partner-sync` as a user runs it: an environment of its own, what it prints, its exit code."""

import os
import sys
from pathlib import Path

from tests import forked
from tests.forked import Done

PROGRAM = str(Path(sys.executable).with_name("partner-sync"))


def clean(environment: dict[str, str]) -> dict[str, str]:
    """Return an environment with nothing of ours in it but what is given."""
    others = {name: value for name, value in os.environ.items() if "PARTNER_SYNC" not in name}
    return others | {"COLUMNS": "120"} | environment


def ran(environment: dict[str, str], *arguments: str, cwd: Path | None = None) -> Done:
    """Run the program to its end."""
    return forked.start(
        forked.partner_sync, list(arguments), clean(environment), cwd=cwd, stderr=True
    ).communicate()
