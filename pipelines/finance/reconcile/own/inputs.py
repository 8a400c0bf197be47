"""What own books are read with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

RULE: Final = "own_"  # begins the name of the rule of each source


@dataclass(frozen=True)
class OwnInputs:
    """What own books are read with: the home, the time, and the rows that sources had before."""

    root: Path
    now: datetime
    rows_before: Mapping[str, int] = field(default_factory=dict)
