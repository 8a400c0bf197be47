"""Several syncs of both lanes at once: one home, one connection each, one actor.

Shares are counted while both lanes are at it: from the moment at which the last sync has its first
answer to that at which the first one has its last.
"""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from sqlalchemy import func, select

from benchmarks.machine import table
from benchmarks.syncing import served, synced
from pipelines.cli.sandbox import Service
from pipelines.state import database
from pipelines.state.tables import REQUESTS, RUNS

SIZES = ("--partners=2500", "--usage=12500", "--billing=2500")  # 25 pages each
# How many syncs of each lane, and the latency in milliseconds.
CROWDS = ((1, 1, 0), (3, 1, 150), (1, 3, 150), (2, 2, 400))
SECRET = "PARTNER_SYNC_CLIENT_SECRET"  # noqa: S105 the name of a variable


def measure() -> str:
    """Sync in several processes of both lanes; return a table."""
    columns = ["nightly", "ad-hoc", "latency", "requests", "429s", "most in a second", "nightly's"]
    rows = [_row(*crowd) for crowd in CROWDS]
    text = table(columns, rows)
    if any(row[columns.index("429s")] for row in rows):
        raise SystemExit(f"{text}\n\na sync met a 429")
    return text


def _connections(service: Service, names: list[str]) -> None:
    """Write a connection for each sync: several to us, one actor to the service."""
    own = service.environment
    common = {
        "base_url": own["PARTNER_SYNC_BASE_URL"],
        "auth_url": own["PARTNER_SYNC_AUTH_URL"],
        "audience": own["PARTNER_SYNC_AUDIENCE"],
        "client_id": own["PARTNER_SYNC_CLIENT_ID"],
        "secret": SECRET,
        "budget_key": "shared",
    }
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in common.items())
    file = Path(own["PARTNER_SYNC_HOME"]) / "config" / "connections.toml"
    file.parent.mkdir()
    file.write_text("".join(f"[{name}]\n{lines}\n" for name in names), encoding="utf-8")


def _row(nightly: int, adhoc: int, latency: int) -> list[object]:
    names = [f"nightly{one}" for one in range(nightly)] + [f"adhoc{one}" for one in range(adhoc)]
    options = (f"--latency-ms={latency}", f"--jitter-ms={4 if latency else 0}")
    with served(*options, *SIZES) as service, ThreadPoolExecutor(len(names)) as pool:
        _connections(service, names)
        syncs = [
            pool.submit(
                synced, service, f"--lane={name.rstrip('0123456789')}", f"--connection={name}"
            )
            for name in names
        ]
        for each in syncs:
            each.result()
        counted = httpx.get(f"{service.url}/__sandbox__/statistics", trust_env=False).json()
        share = _share(Path(service.environment["PARTNER_SYNC_HOME"]))
    return [
        nightly,
        adhoc,
        f"{latency} ms",
        counted["admitted"],
        counted["refused"],
        counted["most_admitted_in_any_window"],
        f"{100 * share:.1f} %",
    ]


def _share(home: Path) -> float:
    """Return the nightly lane's share of the requests while every sync was asking."""
    of_runs = RUNS.join(REQUESTS, RUNS.c.run == REQUESTS.c.run)
    signed = REQUESTS.c.stream.is_not(None)
    query = (
        select(func.min(REQUESTS.c.sent_at), func.max(REQUESTS.c.sent_at))
        .select_from(of_runs)
        .where(signed)
        .group_by(RUNS.c.connection)
    )
    ledger = database.connect(home / "state")
    with ledger.connect() as rows:
        spans = rows.execute(query).all()
        begun, until = max(first for first, _ in spans), min(last for _, last in spans)
        inside = signed & REQUESTS.c.sent_at.between(begun, until)
        asked = select(RUNS.c.connection).select_from(of_runs).where(inside)
        lanes = Counter(name.rstrip("0123456789") for name in rows.execute(asked).scalars())
    ledger.dispose()
    return lanes["nightly"] / lanes.total()
