"""What is expected of a rehearsal's night, each with what was measured.

Here: from the service's own count, the runs' events and both warehouses to lines of the closing
table. Not here: how a night is made (night), how tables are compared (comparison).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tests.distributed.accounts import TWIN
from tests.distributed.analyst import Seen
from tests.distributed.attached import attach
from tests.distributed.comparison import compared
from tests.distributed.night import SHARED, Night, Step

LIMIT = 5  # "Limits": requests of an actor in any second
SHARE = 0.6  # of one worker's time, that two may take


@dataclass(frozen=True)
class Expectation:
    """One line of the closing table."""

    expected: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Lifted:
    """How long a night without a limit took, and what share of the machine neighbours took."""

    seconds: float
    taken: float


def of_values(night: Night, embedded: Path) -> Iterator[Expectation]:
    """Compare every table of the night's warehouse with what the embedded default landed."""
    with duckdb.connect() as database:
        here = attach(database, night.home, night.environment)
        database.execute(f"ATTACH '{embedded / 'warehouse.duckdb'}' AS there (READ_ONLY)")
        every = list(compared(database, here, "there"))
    rows = sum(each.rows for each in every)
    worse = [
        f"{each.table} (+{each.only_here} -{each.only_there})" for each in every if not each.same
    ]
    measured = f"{len(every)} tables, {rows:,} rows; differ: {', '.join(worse) or 'none'}"
    yield Expectation(
        "every table equals the embedded default's", measured, bool(rows) and not worse
    )


def of_analyst(seen: Seen) -> Iterator[Expectation]:
    """Tell what an analyst saw who asked all through a night; only a lake is attached that long."""
    if "warehouse" not in SHARED:
        return
    versions = {version for *_whole, version in seen.answers}
    torn = sum(not all(whole) for *whole, _version in seen.answers)
    refused = "; ".join(sorted(set(seen.refused)))
    measured = (
        f"{len(seen.answers)} answers of {len(versions)} versions; "
        f"in parts: {torn or 'none'}; refused: {refused or 'none'}"
    )
    holds = bool(versions) and not torn and not refused
    yield Expectation("an analyst is never refused and sees whole versions", measured, holds)


def of_budget(night: Night) -> Iterator[Expectation]:
    """Ask the service what it has counted of every actor."""
    counted = night.accounts.counted()
    refused = {name: seen["refused"] for name, seen in counted.items() if seen["refused"]}
    requests = sum(seen["admitted"] for seen in counted.values())
    measured = f"{requests:,} requests of {len(counted)} actors; refused: {refused or 'none'}"
    whole = len(counted) == night.accounts.count
    yield Expectation(
        "no 429 at any actor, by the service's count", measured, whole and not refused
    )
    most = max(seen["most_admitted_in_any_window"] for seen in counted.values())
    yield Expectation("an actor never has more than 5 in any second", str(most), most <= LIMIT)
    yield _shared(night)


def _shared(night: Night) -> Expectation:
    """Tell whether two workers did have one actor at a time: else its count proves nothing."""
    reading = [step for step in night.steps() if step.name == "fetch"]
    twins = [step for step in reading if step.connection in {TWIN, night.accounts.names[0]}]
    workers = {step.worker for step in twins}
    seconds = overlap(twins)
    measured = f"{len(workers)} workers, {seconds:.1f} s at the same time"
    return Expectation("two processes read one actor's lists at once", measured, seconds > 0)


def overlap(steps: list[Step]) -> float:
    """Return how long all the steps were under way at the same time."""
    return min(step.ended for step in steps) - max(step.began for step in steps) if steps else 0.0


def of_scaling(before: Lifted, one: Lifted, after: Lifted) -> Expectation:
    """Compare the time of one worker with that of two, of a night before and one after it.

    Each worker has a third of a core, so that servers and neighbours find room beside two of them.
    """
    two = (before.seconds + after.seconds) / 2
    every = (before, one, after)
    told = ", ".join(f"{each.seconds:.0f} s (neighbours {each.taken:.0%})" for each in every)
    measured = f"two, one, two: {told}: {two / one.seconds:.2f}"
    return Expectation(
        "two workers of a third of a core: at most 0.6 x one's time",
        measured,
        two <= SHARE * one.seconds,
    )
