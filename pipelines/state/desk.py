"""Where a shared request budget is kept: what its rows are, and what a place of keeping does.

Here: the form, whichever database it is. Not here: a file of this machine (desk_of_file), a server
that several machines share (desk_of_server), and what the rows mean (slots).
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

ACCOUNT = (
    *("boot", "learned", "learned_at", "blocked_until", "blocked_to", "gap", "hold", "ease_at"),
    *("incident_at", "sent_at", "turn", "nightly", "adhoc", "foreign_uses", "foreign_at"),
    *("reserve", "reserve_at", "peak", "peak_at"),
)
SLOT = ("number", "owner", "taken_at", "answered_at", "credit", "lost")
TICKET = ("number", "owner", "lane", "looks_at")


class Busy(Exception):
    """Another process writes the state database just now."""


@dataclass
class Slot:
    """A request's slot, on its way until it was answered; the columns of SLOT."""

    number: int
    owner: str
    taken_at: float
    answered_at: float | None
    credit: float
    lost: bool


class Ticket(NamedTuple):
    """A place in the queue; a process has one, however many of its requests wait."""

    number: float
    owner: str
    lane: str
    looks_at: float


@dataclass
class Kept:
    """An actor's rows within one transaction; `account` as in ACCOUNT, None where there is none."""

    account: tuple[object, ...] | None
    slots: list[Slot]
    tickets: list[Ticket]


class Desk(Protocol):
    """A process's place among those that share an actor's rows.

    `owner` is its name there. `boot` is the time that the times belong to: where it is another,
    they are void. `poll` is the seconds between two looks at what others do. `remote`: a
    transaction may take long, so that it does not belong on the event loop. `returned`: it was
    away, and others may have buried it.
    """

    owner: str
    boot: str
    poll: float
    remote: bool
    returned: bool

    def transaction(self) -> AbstractContextManager[Kept]:
        """Keep every other process out; raise Busy where one is in, StorageFailed in words."""

    def write(self, statement: str, *values: object) -> None:
        """Change rows within the transaction; each value is a `?` of the statement."""

    def number(self, table: str) -> int:
        """Return the number of a new row of the table, greater than all there are."""

    def lives(self, owner: str) -> bool:
        """Say whether a process that shares the rows lives."""

    def earliest(self, moment: float) -> float:
        """Return what the rows' clock shows at least at a moment of this process's clock."""

    def latest(self, moment: float) -> float:
        """Return what the rows' clock shows at most at a moment of this process's clock."""

    def hurry(self, seconds: float) -> None:
        """Let what waits for others, or for the server, wait no longer than so: at the end."""

    def close(self) -> None:
        """Leave for good: others see that we are gone."""

    def die(self) -> None:
        """End as by kill -9, for tests: what only a living process holds goes, the rows stay."""
