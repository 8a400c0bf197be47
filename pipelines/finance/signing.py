"""The note on a close, and who signs it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Signing:
    """The note on a close, and who signs it; `approval` says how that is known: see `Close`.

    `accept_open` says why severe breaks stay open that have no owner or no reason. `connections`
    are those for which the month is closed; empty: all.
    """

    note: str = ""
    accept_open: str = ""
    connections: tuple[str, ...] = ()
    preparer: str = ""
    reviewer: str = ""
    approval: str = "declared"

    @property
    def state(self) -> str:
        """Return the state of the close: another user approves one of two people later."""
        return "prepared" if self.approval == "two" else "closed"
