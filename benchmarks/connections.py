"""What one connection of many costs that was read again, and all of them, beside fewer.

Homes with so many connections, each with lists of its own, with a mapping, and so with books. Then
a day later, in which 1 % of the records were changed and 0.5 % added: one connection is read again,
in the first measurement, or all of them (`--all`). Only the build of the version and its books is
measured, in a process of its own on a copy of the home: CPU seconds, the least of a few times, each
home in turn, so that all were measured under the same conditions.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb
import httpx

from benchmarks.machine import machine, table
from benchmarks.sync import FIRST_DAY, NO_LIMIT, PROGRAM, SECOND_DAY
from pipelines.app.session import open_session
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.core.files import write_durably
from pipelines.finance import books
from pipelines.versions.build import build
from tests.sandbox.running import AUDIENCE, Running, started

SECRET: Final = "not secret: made for the benchmark"  # noqa: S105
VARIABLE: Final = "CONNECTIONS_SECRET"
GOAL: Final = 1.3  # times the CPU seconds of a home with the changed connection alone
FULL_SIZE: Final = 20
COLUMNS: Final = ("connections", "read again", "version CPU s", "books CPU s", "together", "ratio")


def name_of(number: int) -> str:
    """Return the name of a connection. DuckDB's zone maps know its first eight bytes."""
    return f"distributor-{number:03}"


@contextmanager
def _service(folder: Path, connections: int, sizes: Sequence[str], port: str) -> Iterator[Running]:
    """Yield a sandbox with so many accounts, each with lists of its own."""
    entries = [
        f'[[clients]]\nid = "{name_of(number)}"\nsecret = "{SECRET}"\n'
        f'actor = "distributor"\nseed = {number}\n'
        for number in range(connections)
    ]
    clients = folder / "clients.toml"
    write_durably(clients, "\n".join(entries).encode())
    clients.chmod(0o600)
    options = ("--clients", str(clients), "--rate", NO_LIMIT, "--port", port)
    with started(*options, *sizes, awkward=False) as running:
        yield running


def _connect(home: Home, running: Running, connections: int) -> None:
    for number in range(connections):
        fields = {
            "base_url": running.url,
            "auth_url": running.url,
            "audience": AUDIENCE,
            "client_id": name_of(number),
            "secret": VARIABLE,
        }
        add_connection(home.connections_file, name_of(number), fields)


def _run(home: Home, *arguments: str) -> None:
    """Run a command to its end. Exits if it fails."""
    environment = os.environ | {"PARTNER_SYNC_HOME": str(home.root), VARIABLE: SECRET}
    command = [PROGRAM, *arguments]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=False)
    if done.returncode not in {0, 3}:  # 3: there are breaks
        raise SystemExit(f"{' '.join(command)} has failed")


def _make_homes(folder: Path, counts: Sequence[int], rows: int, *, every: bool) -> list[Home]:
    """Return homes with a version, its books, and scans of the next day that wait for a build."""
    sizes = ["--usage", str(rows), "--billing", str(rows // 10), "--partners", "50"]
    homes = [Home(folder / f"home-{count}").prepare() for count in counts]
    with _service(folder, max(counts), [*sizes, "--now", FIRST_DAY], "0") as running:
        for home, count in zip(homes, counts, strict=True):
            _connect(home, running, count)
            _run(home, "sync")
            _run(home, "mapping", "accept")
    port = str(httpx.URL(running.url).port)
    with _service(folder, max(counts), [*sizes, "--now", SECOND_DAY], port):
        for home in homes:
            chosen = () if every else ("-c", name_of(0))
            _run(home, "sync", "--no-build", *chosen)
    return homes


def _measure(home: Home) -> tuple[float, float]:
    """Return what the version and its books cost, on a copy of a home."""
    with tempfile.TemporaryDirectory(dir=home.root.parent) as folder:
        copy = shutil.copytree(home.root, Path(folder) / "home", symlinks=True)
        command = [sys.executable, "-m", "benchmarks.connections", "--build", str(copy)]
        environment = os.environ | {VARIABLE: SECRET}
        done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True)
    version, of_books = json.loads(done.stdout.splitlines()[-1])
    return version, of_books


def _build(home: Home) -> None:
    """Build a version and its books; print what each has cost."""
    with open_session(home) as session:
        # DuckDB imports pandas, for 0.3 s, when the first value is bound.
        duckdb.execute("SELECT ?", [0])
        began = time.process_time()
        built = build(session)
        built_at = time.process_time()
        made = books.make_books(session)
        ended = time.process_time()
    if not built.is_new or not made.is_new:
        raise SystemExit("nothing new was built")
    print(json.dumps([built_at - began, ended - built_at]))


def main(arguments: list[str]) -> None:
    """Measure; print a table. Exit with 1 if the goal is missed at full size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks connections", description=__doc__)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, FULL_SIZE])
    parser.add_argument("--rows", type=int, default=20_000, help="usage rows; bills: a tenth")
    parser.add_argument("--all", action="store_true", help="all connections are read again")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="a folder for the homes, which are used again")
    parser.add_argument("--build", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.build:
        _build(Home(options.build))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        homes = [Home(folder / f"home-{count}") for count in options.connections]
        if not all(home.root.exists() for home in homes):
            folder.mkdir(exist_ok=True)
            homes = _make_homes(folder, options.connections, options.rows, every=options.all)
        costs: dict[Home, list[tuple[float, float]]] = {home: [] for home in homes}
        for _ in range(options.times):
            for home in homes:
                costs[home].append(_measure(home))
    least = [min(costs[home], key=sum) for home in homes]
    rows = []
    for count, cost in zip(options.connections, least, strict=True):
        ratio = sum(cost) / sum(least[0])
        read_again = count if options.all else 1
        figures = (f"{cost[0]:.2f}", f"{cost[1]:.2f}", f"{sum(cost):.2f}", f"{ratio:.2f}")
        rows.append((count, read_again, *figures))
    print(f"{machine()}\n`python -m benchmarks connections {' '.join(arguments)}`\n")
    print(table(COLUMNS, rows))
    is_full = not options.all and options.connections == [1, FULL_SIZE]
    if is_full and sum(least[1]) > GOAL * sum(least[0]):
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
