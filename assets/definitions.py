"""The code location. Dagster calls `defs` when it loads; importing this module reads nothing.

A deployment has one home (PARTNER_SYNC_HOME), or all homes of a folder (PARTNER_SYNC_HOMES). The
definitions of each home are the same, and share nothing.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from assets import automation, sensors
from assets.names import Names
from assets.raw import raw_assets
from assets.resources import HomeResource, expected_failures
from assets.unreadable import unreadable_home
from assets.warehouse import export_asset, warehouse_assets
from pipelines.config.homes import HOMES, find_homes
from pipelines.config.settings import Settings, load_settings
from pipelines.core.errors import PartnerSyncError
from pipelines.core.person import expand_user, usable_path


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions for the homes that the environment names."""
    with expected_failures():
        folder = os.environ.get(HOMES, "").strip()
        if folder:
            return deployment(*homes_in(expand_user(Path(folder))))
        return deployment(home_defs(Names(), load_settings()))


def homes_in(folder: Path) -> Iterator[dg.Definitions]:
    """Yield the definitions of each home in a folder. Raises ConfigurationError without homes.

    A home that cannot be read takes no other one down: it fails by itself, visibly.
    """
    homes = find_homes(folder)
    folders = defaultdict[Names, list[str]](list)
    for name in homes:
        folders[Names.of_folder(name)].append(name)
    for names, same in folders.items():
        if len(same) > 1:
            yield unreadable_home(
                names,
                f"The folders {' and '.join(same)} in {folder} have the same name in Dagster, "
                f"{names.home}: none of these homes is read. Rename all of them but one.",
            )
            continue
        home = homes[same[0]]
        try:
            usable_path(home.root)
            settings = load_settings(home)
        except PartnerSyncError as error:
            yield unreadable_home(names, f"{error} {error.remedy}".strip())
        else:
            yield home_defs(names, settings)


def deployment(*homes: dg.Definitions) -> dg.Definitions:
    """Return the definitions of a deployment that serves these homes."""
    # Each job is one step: a process of its own for it would import everything again.
    return dg.Definitions.merge(*homes, dg.Definitions(executor=dg.in_process_executor))


def home_defs(names: Names, settings: Settings) -> dg.Definitions:
    """Return the definitions of a home. Connections are read later, whenever they are needed."""
    service = dg.AssetSpec(
        names.service,
        description="The payments service.",
        group_name=names.group("default"),
        kinds={"api"},
    )
    raw = raw_assets(names, settings)
    warehouse = warehouse_assets(names, settings)
    maintenance = automation.maintenance_job(names)
    return dg.Definitions(
        assets=[service, raw, warehouse, export_asset(names)],
        jobs=[
            dg.define_asset_job(
                names.of(automation.NIGHTLY_SYNC_JOB),
                selection=dg.AssetSelection.assets(raw),
                description="Reads all lists of connections. A sensor then launches `publish`.",
            ),
            dg.define_asset_job(
                names.of(automation.PUBLISH_JOB),
                selection=dg.AssetSelection.assets(warehouse),
                description="Publishes a version and its books, checks both, reports, notifies.",
            ),
            dg.define_asset_job(
                names.of(automation.CHECKS_JOB),
                selection=dg.AssetSelection.checks_for_assets(warehouse),
                description="Evaluates every check. Sends no request and builds nothing.",
            ),
            dg.define_asset_job(
                names.of(automation.REBUILD_JOB),
                selection=dg.AssetSelection.assets(warehouse),
                description="Builds a version from the archive alone, without any request.",
            ),
            maintenance,
        ],
        schedules=[
            automation.nightly_schedule(names, settings),
            automation.maintenance_schedule(names, settings, maintenance),
        ],
        sensors=sensors.home_sensors(names),
        resources={names.resource: HomeResource(path=str(settings.home.root), name=names.resource)},
    )
