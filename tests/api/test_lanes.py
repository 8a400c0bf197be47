"""The fair queue: nightly four to ad-hoc one while both wait, and nothing left unused."""

import asyncio
from collections import Counter
from itertools import pairwise

import pytest
from sqlalchemy import Engine

from pipelines.api import lanes
from pipelines.api.lanes import Lane
from pipelines.state.desk import Ticket
from pipelines.state.slots import Account
from tests import virtual
from tests.api.sharing import Process, Service
from tests.api.test_budget import assert_never_more
from tests.virtual import seconds

NIGHTLY, ADHOC = Lane.NIGHTLY, Lane.ADHOC


def served(account: Account, waiting: list[Ticket], count: int) -> tuple[Account, list[str]]:
    """Serve a queue whose members never stop waiting; return the owners in order."""
    owners = []
    for number in range(count):
        head = lanes.first(account, waiting)
        owners.append(head.owner)
        waiting = [each for each in waiting if each != head]
        waiting.append(head._replace(number=1000 + number))
        account = lanes.served(account, Lane(head.lane))
    return account, owners


def queue(nightly: int, adhoc: int) -> list[Ticket]:
    owners = [(f"n{one}", NIGHTLY) for one in range(nightly)]
    owners += [(f"a{one}", ADHOC) for one in range(adhoc)]
    return [Ticket(number, *each, 0.0) for number, each in enumerate(owners)]


@pytest.mark.parametrize(("nightly", "adhoc"), [(1, 1), (3, 1), (1, 5), (4, 4)])
def test_a_lane_has_its_weight_however_many_wait_in_it(nightly: int, adhoc: int) -> None:
    _, owners = served(Account("boot"), queue(nightly, adhoc), 200)
    shares = Counter(owner[0] for owner in owners)
    assert abs(shares["n"] - 160) <= 1
    for lane, processes in (("n", nightly), ("a", adhoc)):
        each = [count for owner, count in Counter(owners).items() if owner[0] == lane]
        assert len(each) == processes
        assert max(each) - min(each) <= 1


@pytest.mark.parametrize(("idle", "busy"), [(NIGHTLY, ADHOC), (ADHOC, NIGHTLY)])
def test_who_was_away_saved_nothing_up(idle: Lane, busy: Lane) -> None:
    account = Account("boot")
    for _ in range(1000):
        account = lanes.served(account, busy)
    _, owners = served(account, [Ticket(1, "b", busy, 0.0), Ticket(2, "i", idle, 0.0)], 50)
    assert abs(owners.count("i" if idle == NIGHTLY else "b") - 40) <= 1


# Processes of each lane, chains in each process, latency in seconds.
CROWDS = [(1, 1, 3, 0.02), (3, 1, 2, 0.02), (1, 4, 3, 0.15), (2, 2, 3, 0.4)]


@pytest.mark.parametrize(("nightly", "adhoc", "chains", "latency"), CROWDS)
def test_shares_while_both_lanes_wait(
    ledger: Engine, nightly: int, adhoc: int, chains: int, latency: float
) -> None:
    async def main() -> Service:
        service = Service()
        members = [Process(ledger, service, NIGHTLY) for _ in range(nightly)]
        members += [Process(ledger, service, ADHOC) for _ in range(adhoc)]
        await asyncio.gather(*(each.chains(chains, seconds() + 60, latency) for each in members))
        return service

    service = virtual.run(main())
    assert_never_more(service.times, 5, 1.0)
    begun = service.times[0]
    assert 0.72 <= service.share("nightly", begun + 5, begun + 60) <= 0.88
    # Taking turns costs no allowance; getting to know the path does, 20 requests in each process.
    used = len([at for at in service.times if at < begun + 60]) / 300
    assert used > (0.97 if latency < 0.1 else 0.92)


@pytest.mark.parametrize("lane", [NIGHTLY, ADHOC])
def test_a_lane_alone_gets_everything(ledger: Engine, lane: Lane) -> None:
    async def main() -> Service:
        service = Service()
        members = [Process(ledger, service, lane) for _ in range(2)]
        await asyncio.gather(*(each.chains(3, seconds() + 30) for each in members))
        return service

    times = virtual.run(main()).times
    assert_never_more(times, 5, 1.0)
    assert len([at for at in times if at < times[0] + 30]) > 0.96 * 150


def test_in_a_lane_processes_take_turns(ledger: Engine) -> None:
    async def main() -> list[int]:
        services = [Service() for _ in range(3)]
        members = [Process(ledger, service) for service in services]
        await asyncio.gather(*(each.chains(2, seconds() + 30) for each in members))
        return [len(service.arrivals) for service in services]

    counts = sorted(virtual.run(main()))
    assert all(later - one <= 3 for one, later in pairwise(counts))
