"""What one of everything costs, measured: the figures that the model of docs/scale.md is made of.

Nights: `python -m tests.distributed.costing 1 6 20`. Pages and rows: `partner-sync sync` of lists
of 4,440, 44,400 and 166,000 rows (`python -m benchmarks size landing publishing` for larger ones).
Slots: `python -m tests.distributed.slotting`. All on the machine of docs/benchmarks.md,
busy with other suites, so that processor seconds count and seconds do not. Not here: the model.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """A rehearsed night: connections, requests, seconds, and processor seconds of its processes."""

    connections: int
    requests: int
    seconds: float
    conductor: float
    workers: float
    daemon: float
    database: float
    events: int
    dagster: int
    archive: int

    @property
    def processor(self) -> float:
        """The processor seconds of all of it."""
        return self.conductor + self.workers + self.daemon + self.database


ROWS = 4_440  # of a connection of the rehearsal
TWO = Measured(2, 39, 94, 21.6, 61.2, 45.4, 41.5, 449, 2_064_384, 480_568)
SEVEN = Measured(7, 133, 172, 31.4, 111.3, 58.7, 84.7, 1550, 5_562_368, 2_842_284)
LARGEST = Measured(21, 395, 460, 58.7, 215.2, 114.2, 219.4, 4604, 14_188_544, 9_457_668)


def _each(what: str) -> float:
    """Return what one more connection costs, by the two smaller nights."""
    more = SEVEN.connections - TWO.connections or 1
    return float((getattr(SEVEN, what) - getattr(TWO, what)) / more)


def at_first(what: str) -> float:
    """Return what a night costs before its first connection: starting the processes."""
    return float(getattr(TWO, what)) - TWO.connections * _each(what)


FETCH_A_PAGE = 0.022
FOLD_A_ROW = 1 / 43_085
PAGE_ROWS = 350
STEPS = 6  # of a run: one reads, five fold, publish, evaluate, report and check


@dataclass(frozen=True)
class Costs:
    """Seconds are of a processor; bytes as they lie there."""

    page_rows: int = PAGE_ROWS  # 500 asked for, less the overlap and the short lists' pages
    requests_a_run: int = 6  # whoami, description, and what short lists need above page_rows
    conductor_a_run: float = _each("conductor")
    fetch_a_run: float = _each("workers") / STEPS - ROWS / PAGE_ROWS * FETCH_A_PAGE
    fold_a_run: float = _each("workers") * (STEPS - 1) / STEPS - ROWS * FOLD_A_ROW
    daemon_a_run: float = _each("daemon")
    database_a_run: float = _each("database")
    fetch_a_page: float = FETCH_A_PAGE
    fold_a_row: float = FOLD_A_ROW
    publish_a_row: float = 0.9e-6
    database_a_slot: float = 0.0009
    archive_a_page: float = 36_000
    archive_a_run: float = 7_500
    ledger_a_request: float = 475
    warehouse_a_row: float = 143
    events_a_run: float = _each("events")
    bytes_an_event: float = _each("dagster") / max(1.0, _each("events"))


COSTS = Costs()


@dataclass(frozen=True)
class Looked:
    """Dagster with so many partitions, all materialized: processor and elapsed seconds.

    `python -m tests.distributed.partitions`: PostgreSQL, a dynamic dimension beside days. `keys`
    lists the partitions, `cold` makes the status that the UI shows, `warm` takes it as kept.
    """

    partitions: int
    keys: float
    cold: float
    warm: float
    elapsed: float  # of keys and cold, on the busy machine
    megabytes: float


PARTITIONS = (
    Looked(1_095, 0.02, 0.26, 0.03, 1.5, 11),
    Looked(10_220, 0.10, 0.20, 0.03, 1.4, 25),
    Looked(36_500, 0.63, 1.14, 0.08, 5.3, 69),
    Looked(100_010, 1.99, 3.01, 0.15, 31.5, 173),
    Looked(200_020, 3.09, 5.08, 0.32, 48.9, 337),
)
