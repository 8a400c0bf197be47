"""`python -m tests.distributed.partitions N…`: what Dagster takes with N materialized partitions.

One asset by connection and day, as ours, in PostgreSQL. Every size adds to the one before; an event
is written by Dagster and copied with another partition. Figures for benchmarks/costs.py.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date, timedelta
from itertools import product
from pathlib import Path

import dagster as dg
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value
from sqlalchemy import create_engine, text

from tests.distributed import places

LAST = date(2026, 11, 22)
FIRST = LAST - timedelta(days=365)
DAYS = [(FIRST + timedelta(days=each)).isoformat() for each in range(365)]
PARTITIONS = dg.MultiPartitionsDefinition(
    {
        "connection": dg.DynamicPartitionsDefinition(name="connections"),
        "date": dg.DailyPartitionsDefinition(FIRST.isoformat(), end_date=LAST.isoformat()),
    }
)
ARCHIVE = dg.AssetKey("archive")
COPY = text(
    "INSERT INTO event_logs (run_id, event, dagster_event_type, timestamp, asset_key, partition) "
    "SELECT run_id, event, dagster_event_type, timestamp, asset_key, :key FROM event_logs "
    "WHERE asset_key IS NOT NULL ORDER BY id LIMIT 1"
)


def took(what: Callable[[], object]) -> str:
    """Return the processor seconds and the elapsed seconds of a call."""
    processor, begun = time.process_time(), time.perf_counter()
    what()
    return f"{time.process_time() - processor:.2f}/{time.perf_counter() - begun:.2f}"


def grown(instance: dg.DagsterInstance, url: str, before: int, size: int) -> None:
    """Add connections, each with a year of materialized days, up to a size."""
    names = [f"c{number:05}" for number in range(-(-size // len(DAYS)))]
    instance.add_dynamic_partitions("connections", names)
    keys = [f"{name}|{day}" for name, day in product(names, DAYS)]
    if not before:
        first = dg.MultiPartitionKey({"connection": names[0], "date": DAYS[0]})
        words = {"proof": "what a proof says, some two hundred characters of it; " * 4}
        event = dg.AssetMaterialization(ARCHIVE, partition=first, metadata=words)
        instance.report_runless_asset_event(event)
    engine = create_engine(url)
    with engine.begin() as rows:
        rows.execute(COPY, [{"key": key} for key in keys[max(1, before) : size]])
    engine.dispose()


def main(sizes: list[str]) -> None:
    """Print a line for each size: keys, status cold, status warm (processor/elapsed seconds)."""
    url = places.database()
    with tempfile.TemporaryDirectory() as home:
        os.environ["DAGSTER_HOME"] = home
        (Path(home) / "dagster.yaml").write_text(
            f"storage:\n  postgres:\n    postgres_url: {url}\ntelemetry:\n  enabled: false\n"
        )
        before = 0
        with dg.DagsterInstance.get() as instance:

            def status() -> object:
                return get_and_update_asset_status_cache_value(instance, ARCHIVE, PARTITIONS)

            def keys() -> object:
                return PARTITIONS.get_partition_keys(dynamic_partitions_store=instance)

            for size in map(int, sizes):
                grown(instance, url, before, size)
                before = size
                figures = f"keys {took(keys)} cold {took(status)} warm {took(status)}"
                sys.stdout.write(f"{size} partitions: {figures}\n")


if __name__ == "__main__":
    main(sys.argv[1:] or ["1000", "10000", "36500", "100000"])
