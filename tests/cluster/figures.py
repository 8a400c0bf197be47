"""What a rehearsal has measured, when, and what is required."""

import os
import time
from dataclasses import dataclass, field

BUSY = "BUSY"  # in the environment: other work shares the cores, so times are shown, not judged


@dataclass
class Figures:
    """Rows of a table: when (in seconds), what, required, measured, whether that is enough."""

    rows: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def note(self, what: str, measured: object, required: str = "") -> None:
        """Note a figure that nothing depends on, or that was asserted."""
        self.rows.append((self._when(), what, required, str(measured), ""))

    def judge(self, what: str, measured: str, required: str, *, holds: bool) -> None:
        """Note a time, which needs idle cores."""
        verdict = "holds"
        if not holds:
            verdict = "busy machine: not judged" if os.environ.get(BUSY) else "FAILS"
        self.rows.append((self._when(), what, required, measured, verdict))

    def failed(self) -> list[str]:
        """Return what does not hold."""
        return [what for _when, what, *_others, verdict in self.rows if verdict == "FAILS"]

    def table(self) -> str:
        """Return all rows as a table of Markdown."""
        lines = ["| s | what | required | measured | |", "|---|---|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        return "\n".join(lines)

    def seconds(self) -> float:
        """Return how long ago the rehearsal began."""
        return time.monotonic() - self.began

    def _when(self) -> str:
        return f"{self.seconds():.0f}"
