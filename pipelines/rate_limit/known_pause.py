"""Here: the pause that this process knows of, so that it is seen without a transaction.

Not here: the pause that all processes of an actor share, in the metadata database (actor_state).
Times are seconds of this process's monotonic clock.
"""

import math
from weakref import WeakValueDictionary

from pipelines.core.errors import ServiceError


class MustWait(ServiceError):
    """A request was about to leave during a pause. Nothing was sent; it queues again."""


class Pause:
    """Until when no request of this process may leave for one actor.

    `noted` is what answers to this process asked for and no transaction has written yet, `shared`
    what the database said last: a pause that another process or a person ended, ends here too.
    """

    def __init__(self) -> None:
        self.noted = -math.inf
        self.shared = -math.inf

    @property
    def until(self) -> float:
        """When requests may leave again."""
        return max(self.noted, self.shared)

    def note(self, until: float) -> None:
        """Note what an answer asks for, at the moment at which its headers are there."""
        self.noted = max(self.noted, until)

    def update(self, shared: float, written: float) -> None:
        """Take over what the database says, now that it has what was `noted` up to `written`."""
        self.shared = shared
        if self.noted <= written:  # an answer may have come meanwhile, in another thread
            self.noted = -math.inf


PAUSES: WeakValueDictionary[str, Pause] = WeakValueDictionary()


def pause_of(actor: str) -> Pause:
    """Return the pause that all limiters of an actor in this process share."""
    return PAUSES.setdefault(actor, Pause())
