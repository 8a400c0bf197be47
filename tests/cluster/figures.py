"""What a rehearsal has measured, beside what is required."""

import os
from dataclasses import dataclass, field

BUSY = "BUSY"  # in the environment: other work shares the cores, so times are shown, not judged


@dataclass
class Figures:
    """Rows of a table: what, required, measured, and whether that is enough."""

    rows: list[tuple[str, str, str, str]] = field(default_factory=list)

    def note(self, what: str, measured: object, required: str = "") -> None:
        """Note a figure that nothing depends on, or that was asserted."""
        self.rows.append((what, required, str(measured), ""))

    def judge(self, what: str, measured: str, required: str, *, holds: bool) -> None:
        """Note a time, which needs idle cores."""
        verdict = "holds"
        if not holds:
            verdict = "busy machine: not judged" if os.environ.get(BUSY) else "FAILS"
        self.rows.append((what, required, measured, verdict))

    def failed(self) -> list[str]:
        """Return what does not hold."""
        return [what for what, _required, _measured, verdict in self.rows if verdict == "FAILS"]

    def table(self) -> str:
        """Return all rows as a table of Markdown."""
        lines = ["| what | required | measured | |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        return "\n".join(lines)
