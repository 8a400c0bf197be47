"""The tables and the picture of docs/scale.md, out of the model.

`python -m benchmarks scale` prints the tables; `python -m benchmarks.scale` writes them and the
picture into the page. Not here: the model (growth) and what it is made of (costs).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks import costs
from benchmarks.costs import COSTS, LARGEST, PARTITIONS, at_first
from benchmarks.growth import DAGSTER_MOST, HOUR, LIMIT, Plan, kept, night
from benchmarks.machine import table

DOCS = Path(__file__).parents[1] / "docs"
PAGE, PICTURE = DOCS / "scale.md", DOCS / "screenshots" / "scale.png"
COUNTS = (1, 20, 100, 500, 1_000, 5_000, 10_000)
SIZES = {"small": costs.ROWS, "middle": 166_000, "large": 2_000_000}
NIGHT = 8 * HOUR
ENOUGH = NIGHT * 2 / 3  # what a planned night may take: a third is to spare
CLOSE = 0.2  # of what was measured, that a forecast may be off
VERSIONS = 25  # of a lake in a night: there are as many places to fold as wait for each
MOST = 32  # places to fold
# From there on the publications of one lake fill the night, whatever machinery there is.
ROWS_OF_A_LAKE, RUNS_OF_A_LAKE = 100_000_000, 4_000
YEAR = 365
CHANGED = 0.3  # of the pages of a list are new from one night to the next
REHEARSED = Plan(LARGEST.connections, costs.ROWS, 8, 8, 20, 2.0, one_file=False)


def tables() -> dict[str, str]:
    """Return all tables, by name."""
    return {  # no two begin with the same line, by which a page is written
        "forecast and measured": checked(),
        "a connection": a_connection(),
        "a night": nights(),
        "what saturates": saturated(),
        "a year": a_year(),
        "Dagster's partitions": partitions(),
        "how many days": days(),
    }


def measure() -> str:
    """Return all tables as one text."""
    return "\n\n".join(f"### {name}\n\n{text}" for name, text in tables().items())


def written(page: str, new: Iterable[str]) -> str:
    """Return the page with each table in the place of the one that has the same first line."""
    for text in new:
        columns = re.escape(text.partition("\n")[0])
        page = re.sub(rf"(?m)^{columns}$(\n\|.*)*", text.replace("\\", r"\\"), page)
    return page


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


def sized(connections: int, rows: int, *, one_file: bool) -> Plan | None:
    """Return the least machinery whose night is short enough; None where more of it is no help."""
    folding = 1 if one_file else min(MOST, ceil(connections / VERSIONS))
    plan = Plan(connections, rows, 1, folding, 1, 1, one_file=one_file)
    reading = connections * (plan.requests / LIMIT + COSTS.fetch_a_run)
    fetching = ceil(reading / ENOUGH)
    plan = replace(plan, fetching=fetching, conducted=2 * (fetching + folding))
    while (before := night(plan).seconds) > ENOUGH:
        plan = min(_grown(plan), key=lambda each: night(each).seconds)
        if night(plan).seconds >= before:
            return None
    return plan


def _grown(plan: Plan) -> Iterator[Plan]:
    """Give the plan with one more of each that can be added."""
    yield replace(plan, fetching=plan.fetching + 1, conducted=plan.conducted + 2)
    yield replace(plan, processors=plan.processors + 1)
    yield replace(plan, database=plan.database + 1)


def of_one_file(rows: int, seconds: float, publish_a_row: float = COSTS.publish_a_row) -> float:
    """Return how many connections one file takes in so long, each publishing the rows of all."""
    fold, every = COSTS.fold_a_run + rows * COSTS.fold_a_row, rows * publish_a_row
    return float(((fold**2 + 4 * every * seconds) ** 0.5 - fold) / 2 / every)


def parted(connections: int, rows: int) -> tuple[Plan, int]:
    """Return how many warehouses so many connections need, and the machinery of each.

    One file as long as it does, then one lake, then as many as it takes.
    """
    if connections < of_one_file(rows, ENOUGH):
        file = sized(connections, rows, one_file=True)
        if file:
            return file, 1
    lakes = ceil(max(connections * rows / ROWS_OF_A_LAKE, connections / RUNS_OF_A_LAKE))
    while not (plan := sized(ceil(connections / lakes), rows, one_file=False)):
        lakes += 1
    return plan, lakes


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


def nights(counts: Sequence[int] = COUNTS) -> str:
    """Return the nights of each count and size, each on the least machinery for it."""
    rows = []
    for name in ("small", "middle"):
        for count in counts:
            plan, lakes = parted(count, SIZES[name])
            seen = night(plan)
            rows.append(
                (
                    f"{count:,} {name}",
                    f"{lakes * seen.requests:,}",
                    f"{lakes * seen.processor / HOUR:,.1f}",
                    f"{lakes} {'file' if plan.one_file else 'lake' if lakes == 1 else 'lakes'}",
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
        a_version = NIGHT / VERSIONS - COSTS.lake_a_version
        limits = {
            "one core of workers": NIGHT / one.processor,
            "Dagster's daemon": NIGHT / one.daemon,
            "one core of PostgreSQL": NIGHT / one.database,
            "200 runs at a time": 200 * NIGHT / one.under_way,
            "one file, one fold at a time": of_one_file(plan.rows, NIGHT),
            "one lake, 25 publications": a_version / plan.rows / COSTS.lake_a_row,
        }
        rows.append((name, *(f"{limit:,.0f}" for limit in limits.values())))
    return table(["connections", *limits], rows)


def a_year(counts: Sequence[int] = (20, 100, 1_000, 10_000)) -> str:
    """Return what a year of nights leaves behind."""
    rows = []
    for name in ("small", "middle"):
        for count in counts:
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
    cores = [lakes * plan.database for plan, lakes in parts]
    events = [lakes * each.dagster / 1e9 for each, lakes in years]
    left.plot(COUNTS, cores, marker=".", linestyle="--", label="PostgreSQL, middle")
    label = "Dagster's database, either"  # it is about runs, whatever their size
    right.plot(COUNTS, events, marker=".", linestyle="--", label=label)
    left.set_title("cores for a night of eight hours")
    right.set_title("GB after a year of nights")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="connections")
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    picture()
    page = written(PAGE.read_text(encoding="utf-8"), tables().values())
    PAGE.write_text(page, encoding="utf-8")
    print(measure())
