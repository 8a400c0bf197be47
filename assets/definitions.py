"""The code location: everything Dagster is told of."""

import dagster as dg

from assets import rules
from assets.alerts import alerts, failed_runs
from assets.archive import fetch
from assets.current import fold
from assets.executor import executor, sensors
from assets.freshness import FRESHNESS, deadlines, fresh
from assets.lost import lost_runs
from assets.published import published
from assets.reports import report
from assets.resources import Sync
from assets.schedule import NIGHTLY, follow, nightly
from pipelines.settings import load

NAME = load().executor

defs = dg.Definitions(
    assets=[fetch, fold, published, report],
    asset_checks=[fresh, *rules.OWN],
    jobs=[NIGHTLY, FRESHNESS],
    schedules=[nightly, deadlines],
    sensors=[follow, lost_runs, failed_runs, alerts, *sensors(NAME)],
    resources={"sync": Sync()},
    executor=executor(NAME),
)
