"""`python -m tests.assets.night FOLDER`: the chain of today, in a process of its own.

The streams of the definitions are those of the settings when the process begins, so that a test of
other streams needs a process. Prints whether it went well, and the checks that did not pass.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from assets.definitions import defs
from assets.partitions import register
from assets.resources import Sync


def night(instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    """Materialize everything of today, read again."""
    today = datetime.now(UTC).date().isoformat()
    return dg.materialize(
        [asset for asset in defs.assets or () if isinstance(asset, dg.AssetsDefinition)],
        instance=instance,
        resources={"sync": Sync()},
        partition_key=dg.MultiPartitionKey({"connection": "default", "date": today}),
        run_config={"ops": {"fetch": {"config": {"refetch": True}}}},
        raise_on_error=False,
    )


def main(folder: Path) -> None:
    """Run a night on an instance in a folder."""
    folder.mkdir()
    with dg.DagsterInstance.local_temp(str(folder)) as instance:
        register(instance)
        result = night(instance)
    failed = [
        f"{each.asset_key.to_user_string()} {each.check_name}"
        for each in result.get_asset_check_evaluations()
        if not each.passed
    ]
    print(json.dumps({"success": result.success, "failed": sorted(failed)}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
