"""The rule: what the shared rows of an actor mean for its next request.

Every method runs inside one transaction of `slots` and never waits; waiting is the budget's.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pipelines.api import gap, lanes, reserve
from pipelines.api.lanes import Lane
from pipelines.api.path import Path
from pipelines.api.terms import Said, Terms
from pipelines.clock import Clock
from pipelines.state.desk import Ticket
from pipelines.state.slots import Account, Slots, Taken

# Clocks and timers round: a slot is free this much after the window (measured: it matters).
MARGIN = 0.001
# While both lanes wait, slots come one by one: in a burst, a lane whose few requests are all on
# their way would not be waiting, and lose its share. While others use the actor too, even requests
# meet fewer of theirs. Less than the even distance, against delays.
EVEN = 0.9
PATIENCE = 0.05  # seconds for which a process may be late when it is its turn
LONGEST_ANSWER = 120.0  # seconds after which a request is no more on its way: its process hangs
LONGEST_REST = 30.0  # seconds in which an answer comes: it is in none's way until then
LEARNED_FOR = 600.0  # seconds for which a limit that the service stated is believed
ADDRESS_LIMIT = 1  # what the bucket of callers without a valid signature states (Limits)
FORBIDDEN, TOO_MANY_REQUESTS = 403, 429


@dataclass(frozen=True)
class Wait:
    """Seconds until it is worth another look (None: until an answer of ours), and why.

    `blocked`: the seconds that the service asks everybody to wait.
    """

    delay: float | None
    why: str
    blocked: float = 0.0


class Rule:
    """Decides for one process, by the clock, what the rows allow it."""

    def __init__(self, clock: Clock, terms: Terms, lane: Lane, slots: Slots) -> None:
        self._clock = clock
        self._terms = terms
        self._lane = lane
        self._slots = slots
        self.path = Path()
        self.limit = terms.limit  # requests per window that are ours
        self.reserve = 0  # requests per window that are left to others
        self._even = terms.window / max(1, terms.limit)  # seconds for each request, were we alone
        self.queued = False
        self.sightings = 0  # answers that counted others' requests

    def look(self, *, more: bool) -> Taken | Wait:
        """Take a slot, or queue for one; `more` requests of ours wait behind this one."""
        now = self._now
        account = self._account(now)
        if self._slots.returned():
            account = replace(account, blocked_until=max(account.blocked_until, now + self._hold))
            self._slots.save(account)
        unanswered = self._slots.unanswered()
        ended = self._slots.desk.latest(self._clock.monotonic())  # of what others sent, at most
        self._slots.forgo(unanswered, now - LONGEST_ANSWER, ended)
        us, tickets = self._slots.owner, self._slots.tickets()
        due = self._due(account, unanswered, now)
        shared = any(each.lane != self._lane for each in tickets) or self.reserve
        if due is not None and shared:
            due = max(due, account.sent_at + EVEN * self._share)
        mine = next((each for each in tickets if each.owner == us), None)
        others = [each for each in tickets if each.owner != us]
        awake = [each for each in others if now < each.looks_at + PATIENCE]
        ours = mine or Ticket(math.inf, us, self._lane, now)
        head = lanes.first(account, [*awake, ours])
        if head is ours and due is not None and due <= now:
            return self._take(account, unanswered, now, more=more)
        if self._bury([*unanswered, *others], ended):
            return Wait(0.0, "")
        wait = self._wait(account, head, due, unanswered)
        self._queue(mine, now + (LONGEST_REST if wait.delay is None else wait.delay))
        return wait

    def answered(self, taken: Taken, at: float, said: Said | None) -> None:
        """Note the end of a request, and what its answer said.

        `at` is of this process's clock. One that was given up may arrive as much later as a round
        trip takes, and proves no credit.
        """
        ended = self._slots.desk.latest(at)
        if said is None:
            self._slots.answer(taken, ended + self.path.longest, 0.0, lost=True)
            return
        self.path.add(at - said.sent)
        self._heed(said, ended)
        self._slots.answer(taken, ended, self._credit, lost=False)

    def left(self) -> None:
        """Give up our place in the queue."""
        self._slots.leave()
        self.queued = False

    def learned(self, limit: int) -> None:
        """Keep the limit that was stated to the actor."""
        now = self._now
        self._slots.save(replace(self._account(now), learned=limit, learned_at=now))

    def blocked(self, until: float) -> None:
        """Keep everybody from sending until then, by this process's clock; a longer block stays."""
        self._block(self._slots.desk.latest(until))

    @property
    def _now(self) -> float:
        """The time that all who share the rows agree on, and never later than it is."""
        return self._slots.desk.earliest(self._clock.monotonic())

    @property
    def _hold(self) -> float:
        """Seconds after its answer for which a request counts."""
        return self._terms.window + MARGIN

    def _block(self, until: float) -> None:
        account = self._account(self._now)
        stopped = self._stopped(account, until)
        if stopped is not account:
            self._slots.save(stopped)

    def _stopped(self, account: Account, until: float) -> Account:
        """Return the account with nothing sent before a moment."""
        if until <= account.blocked_until:
            return account
        to = self._clock.wall().timestamp() + until - self._now
        return replace(account, blocked_until=until, blocked_to=to)

    def _account(self, now: float) -> Account:
        account = self._slots.account(now, self._clock.wall())
        self._divide(account, now)
        return gap.eased(account, self._even, now)

    def _divide(self, account: Account, now: float) -> None:
        """Divide the limit, as stated lately, else at most as set, between others and us."""
        stated, ours = account.learned or self._terms.limit, self._terms.limit
        known = stated if now < account.learned_at + LEARNED_FOR else min(stated, ours)
        allowed = self._terms.allowance or known
        self.reserve = reserve.current(account, self._terms.window, now)
        self.limit = max(1, min(known - self.reserve, allowed))
        self._even = self._terms.window / max(1, min(known, allowed))

    @property
    def _share(self) -> float:
        """Seconds of the window for each request that is ours."""
        return self._terms.window / self.limit

    @property
    def _credit(self) -> float:
        """What the path is worth; to a process that is new to it, what it is to those beside it."""
        return self.path.credit if self.path.known else self._slots.least_credit()

    def _due(self, account: Account, unanswered: list[Taken], now: float) -> float | None:
        """Return when a slot is free; None where that needs an answer first."""
        hold, credit = self._hold, self._credit
        held = self._slots.held(now - hold, credit)
        spaced = account.sent_at + account.gap if account.gap else now
        due = max(now, account.blocked_until, spaced)
        if len(unanswered) + held < self.limit:
            return due
        if len(unanswered) >= self.limit:
            return None
        place = len(unanswered) + held - self.limit
        return max(due, hold + self._slots.release(now - hold, credit, place))

    def _queue(self, ticket: Ticket | None, looks_at: float) -> None:
        """Wait in the queue; who does not look again when it said so is passed over."""
        self.queued = True
        if ticket is None:
            self._slots.queue(self._lane, looks_at)
        elif ticket.looks_at < looks_at:
            self._slots.rest(looks_at + PATIENCE)  # and is not written again at each short look

    def _take(self, account: Account, unanswered: list[Taken], now: float, *, more: bool) -> Taken:
        if more:
            self._slots.queue(self._lane, now)  # behind those who wait, without a moment between
        elif self.queued:
            self._slots.leave()
        self.queued = more
        oldest = min((each.at for each in unanswered), default=now)
        self._slots.sweep(oldest - self._terms.window - 2 * MARGIN)
        self._slots.save(replace(lanes.served(account, self._lane), sent_at=now))
        return self._slots.take(now)

    def _bury(self, others: Iterable[Taken | Ticket], now: float) -> bool:
        """Free what dead processes hold; say whether there was any."""
        owners = {each.owner for each in others} - {self._slots.owner}
        return any(self._slots.bury(owner, now) for owner in owners)

    def _wait(
        self, account: Account, head: Ticket, due: float | None, unanswered: list[Taken]
    ) -> Wait:
        now, poll = self._now, self._slots.desk.poll
        why = "rate limit"
        theirs = any(each.owner != self._slots.owner for each in unanswered)
        delay = (poll if theirs else None) if due is None else max(0.0, due - now)
        if head.owner != self._slots.owner:
            delay = poll + (delay or 0.0)
            if now >= account.blocked_until:
                same = head.lane == self._lane
                why = "another process" if same else f"the {head.lane} lane"
        return Wait(delay, why, max(0.0, account.blocked_until - now))

    def _heed(self, said: Said, now: float) -> None:
        """Learn from an answer: the limit, how long to stop, a 429's gap, whether we are alone."""
        before = account = self._account(now)
        refused = said.status == TOO_MANY_REQUESTS
        if said.pause is not None:
            self._block(now + said.pause)
            before = account = self._account(now)
        if not self._of_actor(said, account):
            return
        fresh = said.limit == account.learned and now < account.learned_at + LEARNED_FOR / 2
        if said.limit and not fresh and not (refused and account.learned):
            account = replace(account, learned=said.limit, learned_at=now)
            self._divide(account, now)
        # What was on its way when a 429 was heard belongs to the same incident.
        if refused and self._slots.desk.earliest(said.sent) > account.incident_at:
            account = gap.raised(account, self._even, now)
        account = self._left_to_others(said, account, now)
        if account is not before:
            self._slots.save(account)
            self._divide(account, now)

    def _of_actor(self, said: Said, account: Account) -> bool:
        """Say whether an answer speaks of the actor, and not of our address (Limits, 1)."""
        if said.status == TOO_MANY_REQUESTS and said.limit:
            return said.limit == account.learned if account.learned else said.limit != ADDRESS_LIMIT
        return 200 <= said.status < 300 or said.status in {FORBIDDEN, TOO_MANY_REQUESTS}  # noqa: PLR2004

    def _left_to_others(self, said: Said, account: Account, now: float) -> Account:
        """Return the account after what an answer shows of others who use the actor."""
        foreign = self._foreign(said, now)
        if said.limit is None or foreign <= 0:
            return account
        self.sightings += 1
        known, resets_in = self.reserve, said.resets_in or 0.0
        wall = self._clock.wall().timestamp()
        account = replace(account, foreign_uses=account.foreign_uses + 1, foreign_at=wall)
        account = reserve.raised(account, foreign, self._terms.window, now)
        if said.remaining == 0 and foreign > known and resets_in > 0:
            return self._stopped(account, now + min(resets_in, self._hold))
        return account

    def _foreign(self, said: Said, now: float) -> int:
        """Count the requests of others in the window of an answer: at least so many are not ours.

        The first sight of others must not rest on the path. Once they are known, the path tells
        which of our requests were in the window; a request that was refused was not in it.
        """
        if said.limit is None or said.remaining is None:
            return 0
        used, sent = said.limit - said.remaining, self._slots.desk.earliest(said.sent)
        if not self.reserve and used <= self._slots.explained(sent - self._hold):
            return 0
        until = max(self._slots.desk.latest(said.sent), now - self._credit)
        ours = self._slots.explained(sent - self._terms.window, until, self._credit)
        return used - ours + (said.status == TOO_MANY_REQUESTS)
