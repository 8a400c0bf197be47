"""Steps of Dagster that look at what is published, where the lake is away: they are tried again.

Not here: steps that open a session (killing), what people are told (test_snapshots).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.reports import report
from assets.rules import rules
from tests.distributed import places

NOWHERE = {
    "state": "postgresql+psycopg2://nobody@127.0.0.1:1/ledger",
    "archive": "s3://bucket/archive",
    "warehouse": "ducklake:postgres:dbname=lake host=127.0.0.1 port=1",
    "lake_data": "s3://bucket/lake",
}


def shown() -> list[Any]:
    """Run the step that shows the reports."""
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_asset_context(partition_key="default|2026-01-01", instance=instance)
        run: Any = report(context)
        return list(run)


def checked() -> list[Any]:
    """Run the step that looks at what the rules found."""
    with dg.DagsterInstance.ephemeral() as instance:
        run: Any = rules(dg.build_asset_check_context(instance=instance))
        return list(run)


@pytest.mark.parametrize("step", [shown, checked], ids=["report", "rules"])
def test_a_step_is_tried_again_where_the_lake_is_away(
    step: Callable[[], list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in places.variables(NOWHERE).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PARTNER_SYNC_HOME", str(tmp_path))
    with pytest.raises(dg.RetryRequested) as asked:
        step()
    assert asked.value.max_retries == 4
