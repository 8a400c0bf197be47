"""The interface watch in Dagster: two checks of every stream that warn and never block.

Here: what the checks say. Not here: what changed and what differs (pipelines.run.interface).
"""

from collections.abc import Iterable

import dagster as dg

from pipelines.state.descriptions import Difference, SeenChange

UNCHANGED, AS_DESCRIBED = "interface_unchanged", "as_described"
MOST = 100  # lines shown; the tables in meta have all


def unchanged(key: dg.AssetKey, changes: Iterable[SeenChange]) -> dg.AssetCheckResult:
    """Fail for changes that break; show what else changed on those days, new filters included."""
    found = list(changes)
    breaking = [str(each) for each in found if each.meaning == "breaking"]
    others = [str(each) for each in found if each.meaning != "breaking"]
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=UNCHANGED,
        passed=not breaking,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"breaking": breaking[:MOST], "others": others[:MOST]},
    )


def as_described(key: dg.AssetKey, differences: Iterable[Difference]) -> dg.AssetCheckResult:
    """Fail where the last reading is not as the interface description says."""
    found = [str(each) for each in differences]
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=AS_DESCRIBED,
        passed=not found,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"differences": found[:MOST]},
    )
