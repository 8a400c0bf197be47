"""The code location. Dagster calls `defs` when it loads; importing this module reads nothing."""

import dagster as dg

from assets import automation, sensors
from assets.keys import SERVICE
from assets.raw import raw_assets
from assets.resources import HomeResource, expected_failures
from assets.warehouse import export, warehouse_assets
from pipelines.config.settings import Settings, load_settings


def build_defs(settings: Settings) -> dg.Definitions:
    """Return the definitions for a home. Connections are read later, whenever they are needed."""
    service = dg.AssetSpec(SERVICE, description="The payments service.", kinds={"api"})
    raw = raw_assets(settings)
    warehouse = warehouse_assets(settings)
    return dg.Definitions(
        assets=[service, raw, warehouse, export],
        jobs=[
            dg.define_asset_job(
                automation.NIGHTLY_SYNC_JOB,
                selection=dg.AssetSelection.assets(raw),
                description="Reads all lists of connections. A sensor then launches `publish`.",
            ),
            dg.define_asset_job(
                automation.PUBLISH_JOB,
                selection=dg.AssetSelection.assets(warehouse),
                description="Publishes a version and its books, checks both, reports, notifies.",
            ),
            dg.define_asset_job(
                automation.CHECKS_JOB,
                selection=dg.AssetSelection.all_asset_checks(),
                description="Evaluates every check. Sends no request and builds nothing.",
            ),
            dg.define_asset_job(
                automation.REBUILD_JOB,
                selection=dg.AssetSelection.assets(warehouse),
                description="Builds a version from the archive alone, without any request.",
            ),
            automation.maintenance,
        ],
        schedules=[
            automation.nightly_schedule(settings),
            automation.maintenance_schedule(settings),
        ],
        sensors=[
            sensors.publish_after_reads,
            sensors.connections,
            sensors.findings,
            sensors.killed_runs,
        ],
        resources={"home": HomeResource(path=str(settings.home.root))},
        # Each job is one step: a process of its own for it would import everything again.
        executor=dg.in_process_executor,
    )


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions for the home that the environment names."""
    with expected_failures():
        return build_defs(load_settings())
