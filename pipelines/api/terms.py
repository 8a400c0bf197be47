"""What a budget is agreed on: how much, by whom, and what answers say of it. Values only."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine

from pipelines.api.lanes import Lane


def _nobody(*_news: object) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Terms:
    """At most `limit` requests in any `window` seconds, as the service counts them.

    `limit` holds until an answer states another; `allowance` is the most that we want to use.
    """

    limit: int = 5
    window: float = 1.0
    allowance: int | None = None


@dataclass(frozen=True)
class Seat:
    """Where a process sits: the ledger it shares, the lane it waits in, and who is told.

    `waiting(until, why)` at waits of more than a second, `until` where it is known, and with an
    empty `why` when they are over; `foreign(words)` once, if somebody else uses the actor. Without
    a ledger the budget is this process's own.
    """

    ledger: Engine | None = None
    lane: Lane = Lane.NIGHTLY
    waiting: Callable[[datetime | None, str], None] = _nobody
    foreign: Callable[[str], None] = _nobody


ALONE = Seat()


@dataclass(frozen=True)
class Said:
    """What an answer says of the budget; `sent` on the monotonic clock.

    `pause`: the seconds that a 429 asks for, or a 503 with Retry-After. `resets_in`: the seconds
    until X-RateLimit-Reset, None where it is missing or unreadable.
    """

    status: int
    sent: float
    limit: int | None = None
    remaining: int | None = None
    pause: float | None = None
    resets_in: float | None = None
