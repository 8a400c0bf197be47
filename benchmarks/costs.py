"""What one of everything costs, measured: the figures that the model of docs/scale.md is made of.

Nights: `python -m tests.distributed.costing 6 13 20`, the machine without neighbours; state,
archive and warehouse are those of several machines. Pages and rows: `partner-sync sync` of lists
of 4,440 and 44,040 rows into the same. Slots: `python -m tests.distributed.slotting`. Not here: the
model.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """A rehearsed night: its processes in processor seconds, what it left behind in bytes."""

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
    def under_way(self) -> float:
        """The seconds in which its runs were under way, together: all of them all the time."""
        return self.connections * self.seconds


ROWS = 4_440  # of a connection of the rehearsal
SEVEN = Measured(7, 138, 88, 22.6, 111.4, 7.8, 17.8, 1550, 5_373_952, 2_842_284)
FOURTEEN = Measured(14, 277, 111, 25.2, 145.2, 10.4, 25.4, 3063, 10_207_232, 6_149_188)
LARGEST = Measured(21, 410, 160, 28.5, 199.4, 13.8, 35.4, 4594, 15_376_384, 9_457_668)
# What Dagster's asking costs for each second that a run is under way, in seconds of a processor: by
# earlier nights of 2, 7 and 14 connections, which took 22, 46 and 88 s and so told it apart.
CONDUCTOR_ASKED, DATABASE_ASKED, DAEMON_ASKED = 0.002, 0.004, 0.001


def _each(what: str) -> float:
    """Return what one more connection costs, by the two smaller nights.

    In both of them each of the workers' eight processes has done its first work: some seconds.
    """
    more = FOURTEEN.connections - SEVEN.connections
    return float((getattr(FOURTEEN, what) - getattr(SEVEN, what)) / more)


def _run(what: str, asked: float) -> float:
    """Return what a run costs without the seconds that it is under way."""
    return max(0.0, _each(what) - WAY * asked)


def at_first(what: str) -> float:
    """Return what a night costs before its first connection: starting the processes."""
    return float(getattr(SEVEN, what)) - SEVEN.connections * _each(what)


WAY = (FOURTEEN.under_way - SEVEN.under_way) / (FOURTEEN.connections - SEVEN.connections)
FETCH_A_PAGE = 0.014
FOLD_A_ROW = 1 / 28_700  # 43,000 a second where pages and tables are files of the machine
LAKE_A_VERSION = 2.1  # a publication: fifty small tables, whatever is in them
SHARE = 2 / 14  # publications for each run of the rehearsed nights: 2 in that of fourteen
RECONCILE_A_ROW = 5.5e-6  # both sides mapped: `python -m benchmarks reconciliation`
PAGE_ROWS = 350
STEPS = 6  # of a run: one reads, five fold, publish, evaluate, report and check


@dataclass(frozen=True)
class Costs:
    """Seconds are of a processor; bytes as they lie there."""

    page_rows: int = PAGE_ROWS  # 500 asked for, less the overlap and the short lists' pages
    requests_a_run: int = 6  # whoami, description, and what short lists need above page_rows
    conductor_a_run: float = _run("conductor", CONDUCTOR_ASKED)
    conductor_a_second: float = CONDUCTOR_ASKED
    fetch_a_run: float = _each("workers") / STEPS - ROWS / PAGE_ROWS * FETCH_A_PAGE
    fold_a_run: float = (
        _each("workers") * (STEPS - 1) / STEPS - ROWS * FOLD_A_ROW - SHARE * LAKE_A_VERSION
    )
    daemon_a_run: float = _run("daemon", DAEMON_ASKED)
    daemon_a_second: float = DAEMON_ASKED
    database_a_run: float = _run("database", DATABASE_ASKED)
    database_a_second: float = DATABASE_ASKED
    fetch_a_page: float = FETCH_A_PAGE
    fold_a_row: float = FOLD_A_ROW
    publish_a_row: float = 0.9e-6 + RECONCILE_A_ROW
    lake_a_version: float = LAKE_A_VERSION
    lake_a_row: float = 0.5e-6 + RECONCILE_A_ROW
    database_a_slot: float = 0.0009
    archive_a_page: float = 36_000
    archive_a_run: float = 7_500
    ledger_a_request: float = 2_700  # with its indexes; 475 in SQLite
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
