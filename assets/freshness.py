"""Freshness: a check of `published/warehouse` that reads the published file, and when it is run.

After each publication, and once when a list becomes stale as no night came. Not a FreshnessPolicy:
that would take the replay of an old day for fresh data. Not here: what is stale
(pipelines.run.freshness), who is told (alerts).
"""

from collections.abc import Sequence

import dagster as dg

from assets import once
from assets.checks import FRESH, Numbers
from assets.previews import preview
from assets.published import KEY
from assets.resources import Sync
from pipelines import run, settings
from pipelines.errors import ConfigurationError
from pipelines.run import Freshness


@dg.asset_check(asset=KEY, name=FRESH.name, description=FRESH.words)
def fresh(context: dg.AssetCheckExecutionContext, sync: Sync) -> dg.AssetCheckResult:
    """Look at how old the rows are that analysts see."""
    with sync.session(context) as session:
        return judged(run.freshness(session))


def judged(found: Sequence[Freshness]) -> dg.AssetCheckResult:
    """Fail where a list is older than it should be."""
    stale = [each for each in found if each.stale]
    rows = [
        {
            "connection": each.connection,
            "stream": each.stream,
            "day": str(each.day or "never"),
            "fresh until (UTC)": f"{each.until:%Y-%m-%d %H:%M}" if each.until else "",
            "hours old": each.hours,
            "rows": each.rows,
        }
        for each in found
    ]
    numbers: Numbers = {
        "lists": len(found),
        "lists that are stale": len(stale),
        "hours since the oldest was read": max((each.hours or 0.0 for each in found), default=0.0),
        "which": [f"{each.connection}/{each.stream}" for each in stale],
    }
    shown: Numbers = {"freshness": preview(rows)} if rows else {}
    return FRESH.result(KEY, {**numbers, **shown}, passed=not stale)


FRESHNESS = dg.define_asset_job(
    "freshness",
    selection=dg.AssetSelection.checks(fresh),
    description="Whether the published file is as fresh as it should be; sends nothing.",
)


@dg.schedule(
    job=FRESHNESS,
    name="freshness",
    cron_schedule="*/15 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Runs the freshness check once when a list becomes stale.",
)
def deadlines(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """Ask for the check where a list is stale, once for the same rows."""
    try:
        with run.open(settings.load()) as session:
            since = [each.until for each in run.freshness(session) if each.until and each.stale]
    except ConfigurationError as error:
        return dg.SkipReason(str(error))
    if not since:
        return dg.SkipReason("nothing published is stale")
    run_key = f"stale since {max(since).isoformat()}"
    if once.asked(context.instance, [run_key]):
        return dg.SkipReason(f"{run_key}: the check has said so")
    return dg.RunRequest(run_key=run_key)
