"""What own books are read with."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pipelines.finance.reconcile.own.before import Before

RULE: Final = "own_"  # begins the name of the rule of each source


@dataclass(frozen=True)
class OwnInputs:
    """What own books are read with: the home, the time, and what sources had before."""

    root: Path
    now: datetime
    before: Mapping[str, Before]
