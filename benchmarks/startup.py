"""How long a program takes from its start to its first request, as the ledger tells it.

Each program on a home of its own, which is empty the first time only. Not here: what a sync costs
(size).
"""

import json
import shutil
import statistics
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import func, select

from benchmarks.machine import table
from benchmarks.syncing import PROGRAM, run, served
from pipelines.cli.sandbox import Service
from pipelines.state import database
from pipelines.state.tables import REQUESTS

CHECKOUT = Path(__file__).parent.parent
DG = str(Path(sys.executable).with_name("dg"))
REFETCH = json.dumps({"ops": {"fetch": {"config": {"refetch": True}}}})
SIZES = ("--rate=0", "--partners=20", "--usage=100", "--billing=20")
TIMES = 5


def _sync(_service: Service) -> list[str]:
    return [PROGRAM, "sync"]


def _launch(service: Service) -> list[str]:
    """Return what materializes everything of today; make its DAGSTER_HOME ready as docs say."""
    instance = Path(service.environment["DAGSTER_HOME"])
    if not instance.exists():
        instance.mkdir()
        shutil.copyfile(CHECKOUT / "assets" / "dagster.yaml", instance / "dagster.yaml")
        run([sys.executable, "-m", "assets.register"], service)
    partition = f"--partition=default|{datetime.now(UTC).date()}"
    what = ("--assets=*", partition, "--config-json", REFETCH, "--target-path", str(CHECKOUT))
    return [DG, "launch", *what]


# Program, how it is begun, and seconds until its first request at most (on an idle machine).
PROGRAMS = (("partner-sync sync", _sync, 1.5), ("dg launch", _launch, 6.0))


def measure() -> str:
    """Start each program some times; return a table."""
    columns = ["program", "starts", "to the first request (median)", "worst", "limit"]
    return table(columns, [_row(*program) for program in PROGRAMS])


def _row(name: str, command: Callable[[Service], list[str]], limit: float) -> list[object]:
    with served(*SIZES, environment={"PARTNER_SYNC_WINDOW": "0"}) as service:
        home = Path(service.environment["PARTNER_SYNC_HOME"])
        service.environment["DAGSTER_HOME"] = str(home / "dagster")
        took = [_seconds(command(service), service) for _ in range(TIMES)]
    return [
        f"`{name}`",
        len(took),
        f"{statistics.median(took):.2f} s",
        f"{max(took):.2f} s",
        f"{limit} s",
    ]


def _seconds(command: list[str], service: Service) -> float:
    """Run a program to its end; return the seconds from its start to the first request it sent."""
    begun = datetime.now(UTC)
    run(command, service)
    ledger = database.connect(Path(service.environment["PARTNER_SYNC_HOME"]) / "state")
    with ledger.connect() as rows:
        query = select(func.min(REQUESTS.c.sent_at)).where(REQUESTS.c.sent_at >= begun)
        first = rows.execute(query).scalar_one()
    ledger.dispose()
    return float((first - begun).total_seconds())
