"""Here: the pause that this process knows of, so that it is seen without a transaction.

Not here: the pause that all processes of an actor share, in the metadata database (memory).
Times are seconds of this process's monotonic clock.
"""

import math
from weakref import WeakValueDictionary

from pipelines.core.errors import ServiceError


class MustWait(ServiceError):
    """A request was about to leave during a pause. Nothing was sent; it queues again."""


class Pause:
    """Until when no request of this process may leave for one actor.

    `heard` is what answers to this process asked for and no transaction has written yet, `shared`
    what the database said last: a pause that another process or a person ended, ends here too.
    """

    def __init__(self) -> None:
        self.heard = -math.inf
        self.shared = -math.inf

    @property
    def until(self) -> float:
        """When requests may leave again."""
        return max(self.heard, self.shared)

    def hear(self, until: float) -> None:
        """Note what an answer asks for, at the moment at which its headers are there."""
        self.heard = max(self.heard, until)

    def agree(self, shared: float, written: float) -> None:
        """Note what the database says, now that it has what was `heard` up to `written`."""
        self.shared = shared
        if self.heard <= written:  # an answer may have come meanwhile, in another thread
            self.heard = -math.inf


PAUSES: WeakValueDictionary[str, Pause] = WeakValueDictionary()


def pause_of(actor: str) -> Pause:
    """Return the pause that all limiters of an actor in this process share."""
    return PAUSES.setdefault(actor, Pause())
