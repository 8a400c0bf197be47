"""Nights that were: readings of past days, of a service whose data grew and was restated between.

Here: which nights are recorded, each by a sync of its own whose dates are that night's. They are
rehearsed on a sandbox; no real service can be asked what it would have answered. Not here: the UI
that `make dev` opens afterwards (dev).
"""

import os
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

from pipelines.cli import sandbox
from pipelines.errors import ConfigurationError, PartnerSyncError
from pipelines.settings import PREFIX, Home
from pipelines.streams import STREAMS

FIRST = date(2026, 11, 1)  # before it the sandbox has no data
HOUR = "02:00:00Z"  # of the nightly sync


def as_of(day: date) -> date:
    """Return the day that the sandbox is told, whatever this machine's calendar says."""
    return max(day, FIRST)


def asked() -> int:
    """Return how many nights `NIGHTS` asks for."""
    text = os.environ.get("NIGHTS", "") or "0"
    if not text.isdecimal():
        raise ConfigurationError(f"NIGHTS={text}: must be a whole number of nights, such as 3")
    return int(text)


def missing(home: Home, count: int, today: date) -> list[date]:
    """Return the last so many days before today, but those up to the newest that was read.

    A night before it would come after it in the history. A day that lacks a list was interrupted.
    """
    folders = [home.archive / "manifests" / "default" / stream.name for stream in STREAMS]
    read = [{file.name[:10] for file in folder.glob("*.json")} for folder in folders]
    newest = max(map(date.fromisoformat, set.intersection(*read)), default=date.min)
    every = [today - timedelta(days=each) for each in range(count, 0, -1)]
    return [day for day in every if day > newest]


def record(home: Home, days: list[date]) -> None:
    """Sync a home once for each day, as it would have been done in that night."""
    for day in days:
        print(f"recording the night of {day}", flush=True)  # noqa: T201
        with sandbox.running(f"--now={as_of(day)}") as service:
            sandbox.point_at(service)
            own = {f"{PREFIX}HOME": str(home.root), f"{PREFIX}NOW": f"{day}T{HOUR}"}
            program = str(Path(sys.executable).with_name("partner-sync"))
            done = subprocess.run(  # noqa: S603 our own program
                [program, "sync", "--lane=nightly"], env=os.environ | own, check=False
            )
        if done.returncode:
            raise PartnerSyncError(f"the night of {day} was not recorded; its words are above")
