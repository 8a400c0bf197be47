"""What a run will do, said before anything is sent: in its log, its tags and its metadata.

Here: telling it. Not here: what is decided, and what it costs (pipelines.run.intent).
"""

from collections.abc import Mapping

import dagster as dg

from pipelines.run import Intent

TAG = "partner-sync/plan"  # of the run, as the list of runs shows it


def tell(context: dg.AssetExecutionContext, intents: Mapping[str, Intent]) -> None:
    """Log what becomes of each partition; tag the run with all of it together."""
    for partition, intent in intents.items():
        context.log.info("%s: %s", partition, intent.words)
    context.instance.add_run_tags(context.run.run_id, {TAG: summary(intents)})


def summary(intents: Mapping[str, Intent]) -> str:
    """Return the plan of a run on one line."""
    every = intents.values()
    requests = sum(each.requests for each in every)
    minutes = sum(each.minutes for each in every)
    words = f"replay {sum(len(each.there) for each in every)}"
    words += f", fetch {sum(len(each.fetched) for each in every)}"
    unread = sum(len(each.unread) for each in every)
    words += f", {unread} not read on days that are over" if unread else ""
    words += f": {requests:,} requests, {minutes:,.1f} minutes"
    late = any(each.plan and each.plan.collides for each in every)
    return words + (", meets the next night" if late else "")


def of_stream(intent: Intent, stream: str) -> dict[str, dg.MetadataValue]:
    """Return what was planned for one list of one partition."""
    planned = intent.plan.streams if intent.plan else ()
    requests = sum(each.requests or 0 for each in planned if each.stream == stream)
    return {
        "plan": dg.MetadataValue.text(intent.does(stream)),
        "plan of the day": dg.MetadataValue.text(intent.words),
        "requests planned": dg.MetadataValue.int(requests),
        "minutes planned": dg.MetadataValue.float(round(intent.minutes, 3)),
    }
