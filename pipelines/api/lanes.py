"""Who is next: two lanes of waiting processes, by weighted fair queueing.

A lane's weight is shared by its processes, and a lane that nobody waits in costs the other nothing.
"""

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum

from pipelines.state.desk import Ticket
from pipelines.state.slots import Account


class Lane(StrEnum):
    """Who goes first where several runs share a request budget: nightly 4, ad-hoc 1."""

    NIGHTLY = "nightly"
    ADHOC = "adhoc"


WEIGHTS = {Lane.NIGHTLY: 4, Lane.ADHOC: 1}


def _due(account: Account, lane: str) -> float:
    """Return when a lane is due in virtual time; who was away has saved nothing up."""
    return max(account.turn, account.nightly if lane == Lane.NIGHTLY else account.adhoc)


def first(account: Account, tickets: Iterable[Ticket]) -> Ticket:
    """Return the one ticket that may take a slot."""
    return min(
        tickets, key=lambda each: (_due(account, each.lane), each.lane == Lane.ADHOC, each.number)
    )


def served(account: Account, lane: Lane) -> Account:
    """Return the account after a slot for a lane."""
    turn = _due(account, lane)
    due = turn + 1 / WEIGHTS[lane]
    if lane == Lane.NIGHTLY:
        return replace(account, turn=turn, nightly=due)
    return replace(account, turn=turn, adhoc=due)
