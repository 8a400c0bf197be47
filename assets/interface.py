"""The interface watch in Dagster: what its two checks show; they warn and never block.

Here: what the checks say. Not here: what changed and what differs (pipelines.run.interface).
"""

from collections.abc import Iterable

import dagster as dg

from assets.checks import AS_DESCRIBED, MOST, UNCHANGED, Numbers
from pipelines.state.descriptions import Difference, SeenChange


def unchanged(key: dg.AssetKey, changes: Iterable[SeenChange]) -> dg.AssetCheckResult:
    """Fail for changes that break; show what else changed on those days, new filters included."""
    found = list(changes)
    breaking = [str(each) for each in found if each.meaning == "breaking"]
    others = [str(each) for each in found if each.meaning != "breaking"]
    numbers: Numbers = {"breaking": breaking[:MOST], "others": others[:MOST], "changes": len(found)}
    return UNCHANGED.result(key, numbers, passed=not breaking)


def as_described(key: dg.AssetKey, differences: Iterable[Difference]) -> dg.AssetCheckResult:
    """Fail where the last reading is not as the interface description says."""
    found = [str(each) for each in differences]
    numbers: Numbers = {"differences": found[:MOST], "differences in all": len(found)}
    return AS_DESCRIBED.result(key, numbers, passed=not found)
