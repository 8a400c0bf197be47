"""`python -m tests.assets.night FOLDER [CONNECTION LANE]`: the chain of today as a process.

The streams of the definitions are those of the settings when the process begins, so that a test of
other streams needs a process. Prints whether it went well, its run, and the checks that did not
pass. A nightly one has the tag of those that the schedule asks for. One whose lane is named says
that it is ready, and begins when it is told to by a line.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from assets.definitions import defs
from assets.partitions import register
from assets.resources import SCHEDULE_TAG, Sync


def night(
    instance: dg.DagsterInstance, connection: str, tags: dict[str, str]
) -> dg.ExecuteInProcessResult:
    """Materialize everything of today, read again."""
    today = datetime.now(UTC).date().isoformat()
    return dg.materialize(
        [asset for asset in defs.assets or () if isinstance(asset, dg.AssetsDefinition)],
        instance=instance,
        resources={"sync": Sync()},
        partition_key=dg.MultiPartitionKey({"connection": connection, "date": today}),
        tags=tags,
        run_config={"ops": {"fetch": {"config": {"refetch": True}}}},
        raise_on_error=False,
    )


def main(folder: Path, connection: str = "default", lane: str = "") -> None:
    """Run a night on an instance in a folder."""
    if lane:
        print("ready", flush=True)  # noqa: T201
        sys.stdin.readline()
    tags = {SCHEDULE_TAG: "nightly"} if lane == "nightly" else {}
    folder.mkdir()
    with dg.DagsterInstance.local_temp(str(folder)) as instance:
        register(instance)
        result = night(instance, connection, tags)
    failed = [
        f"{each.asset_key.to_user_string()} {each.check_name}"
        for each in result.get_asset_check_evaluations()
        if not each.passed
    ]
    told = {"success": result.success, "failed": sorted(failed), "run": result.run_id}
    print(json.dumps(told))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
