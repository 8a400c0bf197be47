"""What grows with what: from connections, rows and nights to requests, seconds, bytes and places.

Here: one night as it is simulated, and what a year of them leaves behind. Not here: the measured
costs (costs), time and queues (simulation), tables and picture (scale).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from math import ceil

from benchmarks.costs import COSTS, Costs
from benchmarks.simulation import Give, Night, Pool, Run, Take

LIMIT = 5.0  # requests a second of an actor
HOUR = 3600.0
DAGSTER_MOST = 100_000  # partitions of a definition


@dataclass(frozen=True)
class Plan:
    """So many connections of one size, and the machinery that reads them.

    `fetching`, `folding`: steps at a time in all workers; `conducted`: runs at a time; `processors`
    and `database`: cores of the workers with their conductors, and of PostgreSQL; `one_file`: the
    warehouse is DuckDB's single file, folded by one at a time, else a lake.
    """

    connections: int
    rows: int
    fetching: int
    folding: int
    conducted: int
    processors: float
    database: float = 1.0
    one_file: bool = True
    costs: Costs = COSTS

    @property
    def pages(self) -> int:
        """Pages of a connection's lists in a night."""
        return ceil(self.rows / self.costs.page_rows)

    @property
    def requests(self) -> int:
        """Requests of a connection in a night."""
        return self.pages + self.costs.requests_a_run


@dataclass(frozen=True)
class Forecast:
    """What a night comes to: seconds, processor seconds, bytes; `use` of each pool, 1 is all."""

    requests: int
    seconds: float
    processor: float
    database: float
    daemon: float
    archive: float
    ledger: float
    dagster: float
    events: float
    under_way: float  # seconds, of all runs together: so long they are asked how they stand
    use: dict[str, float] = field(default_factory=dict)

    @property
    def narrowest(self) -> str:
        """What holds the night up most."""
        return max(self.use, key=lambda name: self.use[name])


@dataclass
class Published:
    """How far a warehouse is: folds so far, how many its version holds, processor seconds.

    A publication holds all that was folded before it began, so that who waited for it meanwhile
    finds his own fold published (warehouse.publish).
    """

    folded: int = 0
    held: int = 0
    processor: float = 0.0


@cache
def night(plan: Plan) -> Forecast:
    """Simulate one night; it is over when all runs are, and who works beside them."""
    pools = {
        "Dagster's daemon": Pool("Dagster's daemon", 1),
        "runs at a time": Pool("runs at a time", plan.conducted),
        "places to fetch": Pool("places to fetch", plan.fetching),
        "places to fold": Pool("places to fold", 1 if plan.one_file else plan.folding),
        "processors": Pool("processors", max(1, round(plan.processors))),
        "publication": Pool("publication", 1),
    }
    published = Published()
    ended = Night().simulate(_run(plan, pools, published) for _ in range(plan.connections))
    costs, count = plan.costs, plan.connections
    under_way = pools["runs at a time"].busy
    database = count * (costs.database_a_run + plan.requests * costs.database_a_slot)
    database += under_way * costs.database_a_second
    processor = count * _processor(plan) + published.processor
    processor += under_way * costs.conductor_a_second  # beside the simulated: in no pool
    seconds = max(ended, processor / plan.processors, database / plan.database)
    used = {name: pool.use(seconds) for name, pool in pools.items()}
    used["processors"] = processor / plan.processors / seconds
    used["PostgreSQL"] = database / plan.database / seconds
    return Forecast(
        requests=count * plan.requests,
        seconds=seconds,
        processor=processor,
        database=database,
        daemon=count * costs.daemon_a_run + under_way * costs.daemon_a_second,
        archive=count * (plan.pages * costs.archive_a_page + costs.archive_a_run),
        ledger=count * plan.requests * costs.ledger_a_request,
        dagster=count * costs.events_a_run * costs.bytes_an_event,
        events=count * costs.events_a_run,
        under_way=under_way,
        use=used,
    )


def _processor(plan: Plan) -> float:
    """Return the processor seconds of a run, without daemon, database and publication."""
    costs = plan.costs
    return (
        costs.conductor_a_run
        + costs.fetch_a_run
        + plan.pages * costs.fetch_a_page
        + costs.fold_a_run
        + plan.rows * costs.fold_a_row
    )


def _publication(plan: Plan) -> float:
    """Return the processor seconds of a publication: all rows, those of former nights as well.

    One file is written whole each time; of a lake they are read, and the tables of the version's
    own are written.
    """
    costs, rows = plan.costs, plan.connections * plan.rows
    if plan.one_file:
        return rows * costs.publish_a_row
    return costs.lake_a_version + rows * costs.lake_a_row


def _run(plan: Plan, pools: dict[str, Pool], published: Published) -> Run:
    """One connection's run, from the tick to its publication."""
    costs = plan.costs
    cores, conducting = pools["processors"], pools["runs at a time"]
    yield from _within(pools["Dagster's daemon"], costs.daemon_a_run)
    yield Take(conducting)
    yield from _within(cores, costs.conductor_a_run)
    fetching = pools["places to fetch"]
    yield Take(fetching)
    yield from _within(cores, costs.fetch_a_run)
    working = plan.pages * costs.fetch_a_page
    yield from _within(cores, working)
    yield max(0.0, plan.requests / LIMIT - working)
    yield Give(fetching)
    folding = pools["places to fold"]
    yield Take(folding)
    yield from _within(cores, costs.fold_a_run + plan.rows * costs.fold_a_row)
    published.folded += 1
    mine = published.folded
    if not plan.one_file:  # what waits to be folded goes first (assets.executor.LAST)
        yield Give(folding)
        yield Take(folding, last=True)
    yield from _publishing(plan, pools, published, mine)
    yield Give(folding)
    yield Give(conducting)


def _publishing(plan: Plan, pools: dict[str, Pool], published: Published, mine: int) -> Run:
    """Publish what is folded, of a lake nothing where the run's own fold is published already."""
    publishing = pools["publication"]
    yield Take(publishing)
    if plan.one_file or published.held < mine:
        held = published.folded
        seconds = _publication(plan)
        published.processor += seconds
        yield from _within(pools["processors"], seconds)
        published.held = held
    yield Give(publishing)


def _within(pool: Pool, seconds: float) -> Iterator[Take | Give | float]:
    yield Take(pool)
    yield seconds
    yield Give(pool)


@dataclass(frozen=True)
class Kept:
    """What nights leave behind, in bytes and rows, and the partitions of a definition."""

    nights: int
    partitions: int
    archive: float
    ledger: float
    dagster: float
    hours: float


def kept(plan: Plan, nights: int, changed: float) -> Kept:
    """Add nights up; of an unchanged list's pages the share `changed` is new in each night."""
    each = night(plan)
    costs = plan.costs
    new = plan.connections * plan.pages * costs.archive_a_page * changed
    manifests = plan.connections * costs.archive_a_run
    return Kept(
        nights,
        plan.connections * nights,
        each.archive + (nights - 1) * (new + manifests),
        nights * each.ledger,
        nights * each.dagster,
        nights * each.seconds / HOUR,
    )
