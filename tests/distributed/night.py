"""One night on two workers: fresh databases, a fresh home, and what Dagster knows of its runs.

Here: beginning it, watching it come to its end, and who had which step when. Not here: the
processes (stack, servers), what is expected of it (rehearsal, killing).
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from tests.distributed.accounts import Accounts
from tests.distributed.servers import ObjectStore, PostgreSQL, Redis, Server
from tests.distributed.stack import Stack

PARTITION = "dagster/partition"
WORKER = "Celery worker"
EVERY = ("state", "archive", "warehouse")
SHARED = os.environ.get("SHARED", " ".join(EVERY)).split()
LONGEST = 1800.0
BETWEEN_LOOKS = 5.0  # seconds: each takes a processor 0.07 of one
Say = Callable[[str], None]


@dataclass(frozen=True)
class Servers:
    """What every night of a rehearsal shares."""

    postgresql: PostgreSQL
    redis: Redis
    store: ObjectStore

    @property
    def every(self) -> tuple[Server, ...]:
        """All of them."""
        return self.postgresql, self.redis, self.store


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """Run PostgreSQL, Redis and an object store until the end of the block."""
    folder.mkdir(parents=True, exist_ok=True)
    made = PostgreSQL(folder / "pg"), Redis(folder / "redis"), ObjectStore(folder / "s3")
    try:
        for each in made:
            each.begin()
        yield Servers(*made)
    finally:
        for each in reversed(made):
            each.end()


@dataclass(frozen=True)
class Step:
    """One execution of one step: of which connection, by whom, from when to when."""

    connection: str
    name: str
    worker: str
    began: float
    ended: float


@dataclass
class Night:
    """One deployment on its own databases; each of Celery's machines has a home of its own.

    Where not all is shared that may be, `home` is every machine's.
    """

    folder: Path
    servers: Servers
    accounts: Accounts
    settings: Mapping[str, str] = field(default_factory=dict)
    say: Say = print

    def __post_init__(self) -> None:
        """Make the home, the databases and Dagster's instance."""
        self.accounts.write(self.home)
        self.environment = self._environment()
        self.stack = Stack(self.folder, self.environment, self._machine)
        self.stack.code()

    @property
    def home(self) -> Path:
        """PARTNER_SYNC_HOME of code server, daemon and web server."""
        return self.folder / "home"

    @property
    def homes(self) -> list[Path]:
        """Every PARTNER_SYNC_HOME."""
        return [self.home, *sorted(self.folder.glob("machines/*/home"))]

    def _machine(self, name: str) -> dict[str, str]:
        """Return what leads a machine to its own disk, where nothing of it has to be shared."""
        if not set(EVERY) <= set(SHARED):
            return {}
        home = self.folder / "machines" / name / "home"
        self.accounts.write(home)
        return {"PARTNER_SYNC_HOME": str(home)}

    def _environment(self) -> dict[str, str]:
        """Return the environment of every process of it, with databases made for it."""
        name = self.folder.name
        return {
            "PARTNER_SYNC_HOME": str(self.home),
            "PARTNER_SYNC_EXECUTOR": "celery",
            "PARTNER_SYNC_SCHEDULE": "* * * * *",  # of a day only the first tick asks for runs
            "DAGSTER_POSTGRES_URL": self.servers.postgresql.database(f"dagster-{name}"),
            "CELERY_BROKER_URL": self.servers.redis.url(0),
            "CELERY_RESULT_BACKEND": self.servers.redis.url(1),
            **self._shared(name),
            **self.accounts.secrets,
            **self.settings,
        }

    def _shared(self, name: str) -> dict[str, str]:
        """Return where the machines of a deployment share what one has in its home."""
        postgresql, store = self.servers.postgresql, self.servers.store
        bucket = store.bucket(name)
        every = {
            "state": {"PARTNER_SYNC_STATE": postgresql.database(f"state-{name}")},
            "archive": {"PARTNER_SYNC_ARCHIVE": f"{bucket}/archive", **store.environment},
            "warehouse": {
                "PARTNER_SYNC_WAREHOUSE": postgresql.catalog(f"lake-{name}"),
                "PARTNER_SYNC_LAKE_DATA": f"{bucket}/lake/",
            },
        }
        return {key: value for part in SHARED for key, value in every[part].items()}

    def begin(self, workers: int, at_once: int) -> None:
        """Start conductor and workers; when they are ready the daemon, which asks for the night."""
        self.prepare(workers, at_once)
        self.stack.daemon()

    def prepare(self, workers: int, at_once: int) -> None:
        """Start conductor and workers, and wait until they are ready; nothing asks for a night."""
        self.stack.conductor()
        for number in range(1, workers + 1):
            self.stack.worker(f"worker{number}", at_once)
        self.stack.until_ready()

    def records(self) -> list[dg.RunRecord]:
        """Return all runs, the oldest first."""
        with self.stack.instance() as instance:
            return list(reversed(instance.get_run_records()))

    def complete(self) -> bool:
        """Tell whether every connection's day has a run that went well, and nothing goes on."""
        runs = [record.dagster_run for record in self.records()]
        done = {run.tags.get(PARTITION) for run in runs if run.is_success}
        return done == self.partitions() and all(run.is_finished for run in runs)

    def partitions(self) -> set[str | None]:
        """Return the partitions of today."""
        today = datetime.now(UTC).date()
        return {f"{name}|{today}" for name in self.accounts.connections}

    def until(self, reached: Callable[[], bool], what: str, seconds: float = LONGEST) -> None:
        """Wait for something; say meanwhile how many runs are in which state."""
        end, before = time.monotonic() + seconds, ""
        while not reached():
            assert time.monotonic() < end, f"{what}: not within {seconds:.0f} s; {before}"
            ended = self.stack.ended()
            assert not ended, f"{ended[0]} has ended: {self.stack.said(ended[0])}"
            states = Counter(str(each.dagster_run.status.value) for each in self.records())
            now = ", ".join(f"{count} {state.lower()}" for state, count in sorted(states.items()))
            if now != before:
                self.say(f"  {datetime.now(UTC):%H:%M:%S} runs: {now or 'none yet'}")
            before = now
            time.sleep(BETWEEN_LOOKS)

    def steps(self) -> list[Step]:
        """Return every execution of a step that came to its end."""
        with self.stack.instance() as instance:
            runs = instance.get_runs()
            return [step for run in runs for step in _steps(instance, run)]

    def seconds(self) -> float:
        """Return the time from the first step's begin to the last one's end."""
        steps = self.steps()
        return max(step.ended for step in steps) - min(step.began for step in steps)


def _steps(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Iterator[Step]:
    connection = run.tags.get(PARTITION, "").split("|")[0]
    begun: dict[str, tuple[str, float]] = {}
    for log in instance.all_logs(run.run_id):
        event = log.dagster_event
        key = event.step_key if event else None
        if event is None or key is None:
            continue
        if event.event_type is dg.DagsterEventType.ENGINE_EVENT:
            told = event.engine_event_data.metadata.get(WORKER)
            if isinstance(told, dg.TextMetadataValue):
                begun[key] = str(told.text), log.timestamp
        elif event.is_step_success and key in begun:
            yield Step(connection, key, *begun.pop(key), log.timestamp)
