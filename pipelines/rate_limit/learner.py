"""Here: what one process learns from answers: round trips, the limit, others, 429s of its own.

Not here: what all processes know of an actor (actor_state). Times are seconds of the clock that
the processes share.
"""

import logging
import math
from collections import deque
from dataclasses import replace
from http import HTTPStatus

from pipelines.rate_limit import actor_state
from pipelines.rate_limit.headers import HIGHEST_LIMIT, RateHeaders, read_rate_headers
from pipelines.rate_limit.policy import (
    CAUTION_SPACING,
    MARGIN,
    SHARED_SPACING,
    Allowance,
    count_ours,
    credit_of,
)
from pipelines.rate_limit.rows import KEPT_SECONDS, UPDATE_SLOT, LimitOptions, Slot, Transaction

REMEMBERED_TRIPS = 300  # round trips: one minute at 5 requests per second
TOLD_SECONDS = 30.0  # that other clients may cost before a person is told
logger = logging.getLogger(__name__)


class Learner:
    """What a process knows from its own answers.

    `trips` are seconds of its last round trips. `limit` is what it may use of the limit per window,
    as of the last `allowance`.
    """

    def __init__(self, options: LimitOptions) -> None:
        self.trips: deque[float] = deque(maxlen=REMEMBERED_TRIPS)
        self.limit = options.limit
        self._options = options
        self._stated_limit: int | None = None  # by an answer to this process
        self._lost_seconds = 0.0  # by which others made requests later; infinite once it was told

    def remaining(self, slot: Slot) -> int:
        """Return how many requests remain, as an answer says; 0 if it does not say it."""
        if slot.status != HTTPStatus.OK:
            return 0
        stated = read_rate_headers(slot.status, slot.headers, self._stated_limit)
        if stated is None or stated.remaining is None:
            return 0
        return stated.remaining

    def allowance(self, transaction: Transaction) -> Allowance:
        """Return what this process may use now."""
        owner = transaction.owner
        state = transaction.state
        window = self._options.window_seconds
        default = self._options.limit
        others = actor_state.expected_others(state, transaction.now)
        stated = self._stated_limit or min(default, state.limit or default)
        limit = max(stated - others, min(stated, math.ceil(window)))  # one a second stays ours
        self.limit = min(limit, self._options.max_requests_per_window or limit)
        even = window / self.limit
        if transaction.now < state.caution_until:
            return Allowance(owner, self.limit, window, 0.0, CAUTION_SPACING * even)
        spacing = SHARED_SPACING * even if others else 0.0
        return Allowance(owner, self.limit, window, credit_of(self.trips), spacing)

    def write_ended(
        self, transaction: Transaction, slot: Slot, answered_at: float, unix_now: float
    ) -> None:
        """Write how long a request holds its slot, and what its answer says of the limit.

        `answered_at` is when it ended, with an answer or without one.
        """
        window = self._options.window_seconds + MARGIN
        times = {"held_until": answered_at + window}
        if slot.trip is not None:
            times["sent_at"] = answered_at - slot.trip
            times["credit"] = credit_of(self.trips)
        transaction.execute(UPDATE_SLOT, {"of": slot.number, **times})
        stated = read_rate_headers(slot.status, slot.headers, transaction.state.limit)
        if slot.status == HTTPStatus.TOO_MANY_REQUESTS:
            actor_state.pause(transaction.state, window, transaction.now, unix_now)
        if stated is not None:
            self._learn(transaction, slot, stated, answered_at)
        self._note_lost()

    def _learn(
        self, transaction: Transaction, slot: Slot, stated: RateHeaders, answered_at: float
    ) -> None:
        """Learn from an answer: the limit, how much others send, whether a 429 is our mistake."""
        is_refused = slot.status == HTTPStatus.TOO_MANY_REQUESTS
        if stated.limit and not is_refused:
            transaction.state.limit = stated.limit
            self._stated_limit = stated.limit
        if slot.trip is None or answered_at - slot.trip < transaction.now - KEPT_SECONDS:
            return  # slots that the answer may count are deleted already
        limit = stated.limit or transaction.state.limit or self._options.limit
        if is_refused:
            self._explain_refusal(transaction, slot, slot.trip, limit, answered_at)
        elif stated.remaining is not None and stated.remaining <= HIGHEST_LIMIT:
            counted = limit - stated.remaining
            is_full = stated.remaining == 0
            self._note_others(transaction, slot.trip, counted, answered_at, is_full=is_full)

    def _note_others(
        self,
        transaction: Transaction,
        trip: float,
        counted: int,
        answered_at: float,
        *,
        is_full: bool,
    ) -> None:
        """Remember as requests of others what an answer counts besides our own."""
        slots = transaction.read_slots()
        ours = count_ours(slots, trip, self.allowance(transaction), answered_at)
        if counted > ours:
            actor_state.see_others(
                transaction.state, counted - ours, transaction.now, is_full=is_full
            )

    def _note_lost(self) -> None:
        """Tell a person, once, if what others use has cost much time: the reason and the cost."""
        options = self._options
        window = options.window_seconds
        used = self.limit
        stated = self._stated_limit or used
        alone = min(stated, options.max_requests_per_window or stated)
        self._lost_seconds += window / used - window / alone
        if not TOLD_SECONDS <= self._lost_seconds < math.inf:
            return
        self._lost_seconds = math.inf
        logger.warning(
            "%s: other clients of this account use up to %d of its %d requests per second, the "
            "service says (X-RateLimit-Remaining). They are left free, so this process sends %d "
            "per second in place of %d and takes up to %.1f times as long. No row is lost. Run it "
            "when the others do not. If there are none, ask the service why it counts them.",
            *(options.connection or "The service", stated - used, stated, used, alone),
            alone / used,
        )

    def _explain_refusal(
        self, transaction: Transaction, slot: Slot, trip: float, limit: int, answered_at: float
    ) -> None:
        """Slow down if our own requests filled the window, and no others were seen."""
        state = transaction.state
        now = transaction.now
        slots = transaction.read_slots()
        # The service does not count a refused request. Our credit may have been the mistake.
        counted = [other for other in slots if other.number != slot.number]
        allowance = replace(self.allowance(transaction), credit=0.0)
        ours = count_ours(counted, trip, allowance, answered_at)
        if ours >= limit and not actor_state.expected_others(state, now):
            actor_state.be_cautious(state, now - trip, now)
