"""Fixtures: Dagster instances of their own, on homes and services that are real."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from assets.definitions import defs
from assets.resources import Sync
from pipelines.cli.sandbox import Service
from tests.sandbox.running import sandboxed

TODAY = datetime.now(UTC).date()
ON_DISK = pytest.mark.parametrize("instance", ["on disk"], indirect=True)
Materialize = Callable[..., dg.ExecuteInProcessResult]


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """Serve a small data set so fast that no test waits for the rate limit."""
    with sandboxed("--rate=1000", "--partners=20", "--usage=600", "--billing=60") as running:
        yield running


@pytest.fixture
def instance(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """Yield an instance that knows the connection `default`: in memory, or ON_DISK."""
    if hasattr(request, "param"):
        folder = tmp_path / "dagster"
        folder.mkdir()
        opened = dg.DagsterInstance.local_temp(str(folder))
    else:
        opened = dg.DagsterInstance.ephemeral()
    with opened as made:
        made.add_dynamic_partitions("connections", ["default"])
        yield made


@pytest.fixture
def materialize(
    service: Service,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Materialize:
    """Return what materializes the whole chain for a range of days of `default`."""
    for name, value in service.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PARTNER_SYNC_HOME", str(tmp_path / "home"))

    def run(
        first: date = TODAY, last: date = TODAY, *, refetch: bool = False
    ) -> dg.ExecuteInProcessResult:
        tags = {
            "dagster/asset_partition_range_start": f"default|{first}",
            "dagster/asset_partition_range_end": f"default|{last}",
        }
        return dg.materialize(
            [asset for asset in defs.assets or () if isinstance(asset, dg.AssetsDefinition)],
            instance=instance,
            resources={"sync": Sync()},
            tags=tags,
            run_config={"ops": {"fetch": {"config": {"refetch": refetch}}}},
            raise_on_error=False,
        )

    return run


def yesterday() -> date:
    """Return the day before today."""
    return TODAY - timedelta(days=1)
