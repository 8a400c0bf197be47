"""The tables and the picture of docs/scale.md, out of the model.

`python -m benchmarks scale` prints the tables; `python -m benchmarks.scale` writes the picture as
well. Not here: the model (growth) and what it is made of (costs).
"""

from dataclasses import replace
from math import ceil
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks import costs
from benchmarks.costs import COSTS, LARGEST, PARTITIONS, at_first
from benchmarks.growth import DAGSTER_MOST, HOUR, LIMIT, Plan, kept, night
from benchmarks.machine import table

PICTURE = Path(__file__).parents[1] / "docs" / "screenshots" / "scale.png"
COUNTS = (1, 20, 100, 500, 1_000, 5_000, 10_000)
SIZES = {"small": costs.ROWS, "middle": 166_000, "large": 2_000_000}
NIGHT = 8 * HOUR
CLOSE = 0.2  # of what was measured, that a forecast may be off
VERSIONS = 25  # of a lake in a night: there are as many places to fold as wait for each
MOST = 32  # places to fold
# Above that the publications of one lake alone fill the night.
ROWS_OF_A_LAKE, RUNS_OF_A_LAKE = 100_000_000, 4_000
YEAR = 365
CHANGED = 0.3  # of the pages of a list are new from one night to the next
REHEARSED = Plan(LARGEST.connections, costs.ROWS, 8, 8, 20, 2.0, one_file=False)


def measure() -> str:
    """Return all tables."""
    parts = {
        "forecast and measured": checked(),
        "a connection": a_connection(),
        "a night": nights(),
        "what saturates": saturated(),
        "a year": a_year(),
        "Dagster's partitions": partitions(),
        "how many days": days(),
    }
    return "\n\n".join(f"### {name}\n\n{text}" for name, text in parts.items())


def checks() -> list[tuple[str, float, float]]:
    """Return what was forecast of the largest rehearsed night, and what was measured.

    How long it took is taken as measured: everything had the same two cores.
    """
    seen = night(REHEARSED)
    # Two connections are one account, whose pages are kept once.
    accounts = night(replace(REHEARSED, connections=REHEARSED.connections - 1))
    asking = LARGEST.under_way
    longer = asking - seen.under_way
    conductor = REHEARSED.connections * COSTS.conductor_a_run
    workers = seen.processor - conductor - seen.under_way * COSTS.conductor_a_second
    daemon = seen.daemon + longer * COSTS.daemon_a_second
    database = seen.database + longer * COSTS.database_a_second
    asked = conductor + asking * COSTS.conductor_a_second
    return [
        ("requests", seen.requests, LARGEST.requests),
        ("conductor, CPU s", at_first("conductor") + asked, LARGEST.conductor),
        ("workers, CPU s", at_first("workers") + workers, LARGEST.workers),
        ("daemon, CPU s", at_first("daemon") + daemon, LARGEST.daemon),
        ("PostgreSQL, CPU s", at_first("database") + database, LARGEST.database),
        ("Dagster's events", at_first("events") + seen.events, LARGEST.events),
        ("Dagster's bytes", at_first("dagster") + seen.dagster, LARGEST.dagster),
        ("archive, bytes", accounts.archive, LARGEST.archive),
    ]


def checked() -> str:
    """Compare forecast and measurement."""
    rows = [
        (what, f"{model:,.0f}", f"{seen:,.0f}", f"{100 * (model / seen - 1):+.0f} %")
        for what, model, seen in checks()
    ]
    return table(["21 connections, two workers", "forecast", "measured", "off"], rows)


def sized(connections: int, rows: int) -> Plan:
    """Return the least machinery that does the night in time, a single file up to 50."""
    one_file = connections < 50  # noqa: PLR2004
    folding = 1 if one_file else min(MOST, ceil(connections / VERSIONS))
    plan = Plan(connections, rows, 1, folding, 1, 64.0, one_file=one_file)
    reading = plan.requests / LIMIT + COSTS.fetch_a_run
    spare = NIGHT * 0.7
    fetching = max(1, ceil(connections * reading / spare))
    plan = replace(plan, fetching=fetching, conducted=2 * (fetching + folding))
    seen = night(plan)
    return replace(
        plan,
        processors=max(1, ceil(seen.processor / spare)),
        database=max(1, ceil(seen.database / spare)),
    )


def parted(connections: int, rows: int) -> tuple[Plan, int]:
    """Return how many lakes so many connections need, and the machinery of each."""
    lakes = ceil(max(connections * rows / ROWS_OF_A_LAKE, connections / RUNS_OF_A_LAKE))
    return sized(ceil(connections / lakes), rows), lakes


def a_connection() -> str:
    """Return what one connection costs in a night."""
    rows = []
    for name, size in SIZES.items():
        plan = Plan(1, size, 1, 1, 1, 1.0)
        seen = night(plan)
        rows.append(
            (
                f"{name}: {size:,}",
                f"{plan.requests:,}",
                f"{plan.requests / LIMIT / 60:.1f}",
                f"{seen.processor:.0f} s",
                f"{seen.database + seen.daemon:.0f} s",
                f"{plan.pages * COSTS.archive_a_page / 1e6:,.1f} MB",
                f"{seen.ledger / 1e3:,.0f} KB",
                f"{size * COSTS.warehouse_a_row / 1e6:,.1f} MB",
                f"{seen.dagster / 1e3:,.0f} KB",
            )
        )
    columns = ["rows", "requests", "minutes at 5/s", "CPU of workers", "CPU of PostgreSQL, daemon"]
    return table([*columns, "archive", "ledger", "warehouse", "Dagster"], rows)


def nights() -> str:
    """Return the nights of each count and size, each on the least machinery for it."""
    rows = []
    for name in ("small", "middle"):
        for count in COUNTS:
            plan, lakes = parted(count, SIZES[name])
            seen = night(plan)
            rows.append(
                (
                    f"{count:,} {name}",
                    f"{lakes * seen.requests:,}",
                    f"{lakes * seen.processor / HOUR:,.1f}",
                    f"{lakes}",
                    f"{lakes * plan.processors:.0f}",
                    f"{lakes * plan.fetching} / {lakes * plan.conducted}",
                    f"{lakes * plan.database:.0f}",
                    f"{seen.seconds / HOUR:.1f} h",
                    f"{seen.narrowest} {100 * seen.use[seen.narrowest]:.0f} %",
                )
            )
    columns = ["connections", "requests", "CPU hours", "warehouses", "cores"]
    others = ["fetching / runs at a time", "cores of PostgreSQL", "night", "narrowest"]
    return table([*columns, *others], rows)


def saturated() -> str:
    """Return how many connections a night of eight hours has room for, engine by engine."""
    rows = []
    for name in ("small", "middle"):
        plan = Plan(1, SIZES[name], 1, 1, 1, 1.0)
        one = night(plan)
        whole = plan.requests / LIMIT + one.processor
        every = plan.rows * COSTS.publish_a_row
        file = (-one.processor + (one.processor**2 + 4 * every * NIGHT) ** 0.5) / 2 / every
        a_version = NIGHT / VERSIONS - COSTS.lake_a_version  # half of all rows, on average
        limits = {
            "one core of workers": NIGHT / one.processor,
            "Dagster's daemon": NIGHT / COSTS.daemon_a_run,
            "one core of PostgreSQL": NIGHT / one.database,
            "200 runs at a time": 200 * NIGHT / whole,
            "one file, one fold at a time": file,
            "one lake, 25 publications": 2 * a_version / plan.rows / COSTS.lake_a_row,
        }
        rows.append((name, *(f"{limit:,.0f}" for limit in limits.values())))
    return table(["connections", *limits], rows)


def a_year() -> str:
    """Return what a year of nights leaves behind."""
    rows = []
    for name in ("small", "middle"):
        for count in (20, 100, 1_000, 10_000):
            plan, lakes = parted(count, SIZES[name])
            left = kept(plan, YEAR, CHANGED)
            rows.append(
                (
                    f"{count:,} {name}",
                    f"{count * YEAR:,}",
                    f"{lakes * left.archive / 1e9:,.1f} GB",
                    f"{lakes * left.ledger / 1e9:,.1f} GB",
                    f"{lakes * left.dagster / 1e9:,.1f} GB",
                    f"{left.hours:,.0f} h",
                )
            )
    columns = ["connections", "partitions", "archive", "ledger", "Dagster, nothing purged"]
    return table([*columns, "hours of nights"], rows)


def partitions() -> str:
    """Return what Dagster took with many partitions."""
    rows = [
        (
            f"{each.partitions:,}",
            f"{each.keys:.2f} s",
            f"{each.cold:.2f} s",
            f"{each.warm:.2f} s",
            f"{each.elapsed:.0f} s",
            f"{each.megabytes:.0f} MB",
        )
        for each in PARTITIONS
    ]
    columns = ["partitions", "list them", "status, cold", "status, kept", "both, elapsed"]
    return table([*columns, "events of one asset"], rows)


def days() -> str:
    """Return how many days a definition of 100,000 partitions holds."""
    rows = [
        (f"{count:,}", f"{DAGSTER_MOST // count:,}", ceil(count * YEAR / DAGSTER_MOST))
        for count in (20, 100, 274, 500, 1_000, 5_000, 10_000)
    ]
    return table(["connections", "days in one code location", "code locations for a year"], rows)


def picture() -> None:
    """Draw the night's cores and the year's bytes by connections; write it."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, mark in (("small", "o"), ("middle", "s")):
        parts = [parted(count, SIZES[name]) for count in COUNTS]
        years = [(kept(plan, YEAR, CHANGED), lakes) for plan, lakes in parts]
        cores = [lakes * plan.processors for plan, lakes in parts]
        left.plot(COUNTS, cores, marker=mark, label=f"workers, {name}")
        archives = [lakes * each.archive / 1e9 for each, lakes in years]
        right.plot(COUNTS, archives, marker=mark, label=f"archive, {name}")
    # Both are about runs, whatever their size.
    cores = [lakes * plan.database for plan, lakes in parts]
    events = [lakes * each.dagster / 1e9 for each, lakes in years]
    left.plot(COUNTS, cores, marker=".", linestyle="--", label="PostgreSQL")
    right.plot(COUNTS, events, marker=".", linestyle="--", label="Dagster's database")
    left.set_title("cores for a night of eight hours")
    right.set_title("GB after a year of nights")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="connections")
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    picture()
    print(measure())
