"""Assets behind `raw`: the tables of the warehouse and the published version, without partitions.

A version holds all days and connections, so one step builds all of it.
"""

from collections.abc import Iterator

import dagster as dg

from assets.checks import check_results, check_specs
from assets.raw import raw_key
from assets.resources import HomeResource, LogProgress, failure
from pipelines.app.checkup import run_checks
from pipelines.app.session import AppSession
from pipelines.app.sync import build_version
from pipelines.config.settings import Settings
from pipelines.core.text import quote_identifier
from pipelines.publish.build import BuildResult
from pipelines.warehouse.protocol import Version

PUBLISHED = dg.AssetKey(["published", "warehouse"])
TABLES = "SELECT views.view_name FROM duckdb_views() AS views WHERE views.schema_name = 'current'"
Result = dg.MaterializeResult[None] | dg.AssetCheckResult
Metadata = dict[str, dg.MetadataValue]


def table_key(stream: str) -> dg.AssetKey:
    """Return the key of a stream's table in the warehouse."""
    return dg.AssetKey(["warehouse", stream])


def warehouse_assets(settings: Settings) -> dg.AssetsDefinition:
    """Return the step that builds and publishes a version from every scan that waits for it."""
    streams = list(settings.all_streams())

    @dg.multi_asset(
        name="build",
        specs=[*map(_table_spec, streams), _published_spec(streams)],
        check_specs=list(check_specs(settings)),
        can_subset=True,  # so that the checks can be evaluated without a build
    )
    def build(context: dg.AssetExecutionContext, home: HomeResource) -> Iterator[Result]:
        with home.session() as session:
            built = None
            if context.selected_asset_keys:
                built = build_version(session, LogProgress(context.log))
            assets = list(_asset_results(session, built)) if built else []
            checks = run_checks(session)
        yield from (each for each in assets if each.asset_key in context.selected_asset_keys)
        yield from check_results(context.selected_asset_check_keys, checks)
        if built is not None and built.version is None:
            raise nothing_published(built)

    return build


def _table_spec(stream: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        table_key(stream),
        deps=[raw_key(stream)],
        description=f"`current.{stream}` and `history.{stream}` of the published version.",
        group_name="warehouse",
        kinds={"duckdb", "table"},
        skippable=True,  # a stream that was never read has no table
    )


def _published_spec(streams: list[str]) -> dg.AssetSpec:
    return dg.AssetSpec(
        PUBLISHED,
        deps=[table_key(stream) for stream in streams],
        description="The file that analysts open: all streams and connections, at one moment.",
        group_name="published",
        kinds={"duckdb", "file"},
        skippable=True,  # the checks are evaluated without it, and there may be no version yet
    )


def _asset_results(session: AppSession, built: BuildResult) -> Iterator[dg.MaterializeResult[None]]:
    """Yield a result for each table of the published version, and for the version."""
    if built.version is None:
        return
    for stream, rows in count_rows(session, built.version).items():
        count = dg.MetadataValue.int(rows)
        yield dg.MaterializeResult(
            asset_key=table_key(stream), metadata={"dagster/row_count": count}
        )
    metadata = build_metadata(built, built.version)
    yield dg.MaterializeResult(asset_key=PUBLISHED, metadata=metadata)


def nothing_published(built: BuildResult) -> dg.Failure:
    """Return the failure of a first build that has no version to show."""
    reasons = list(built.failed.values())
    reasons += [result.held for result in built.results if result.held]
    if reasons:
        return failure("\n".join(["Nothing was published.", *reasons]))
    return failure("Nothing was published: no list has been read yet.", "Materialize raw/* first.")


def count_rows(session: AppSession, version: Version) -> dict[str, int]:
    """Return the current rows of each stream that has a table in a version."""
    with session.warehouse.open(version.number) as db:
        tables = {str(name) for (name,) in db.sql(TABLES).fetchall()}
        counts = {}
        for name in tables & set(session.settings.all_streams()):
            table = f"current.{quote_identifier(name)}"
            counts[name] = int(db.sql(f"SELECT count(*) FROM {table}").fetchall()[0][0])
    return counts


def build_metadata(built: BuildResult, version: Version) -> Metadata:
    """Return what a build did, in rows over all streams. Held and failed scans are checks too."""
    results = built.results
    held = sum(result.held is not None for result in results)
    numbers = {
        "version": version.number,
        "scans loaded": len(results) - held,
        "scans held": held,
        "scans failed": len(built.failed),
        "rows new": sum(result.new for result in results),
        "rows changed": sum(result.changed for result in results),
        "rows deleted": sum(result.deleted for result in results),
        "rows quarantined": sum(result.quarantined for result in results),
    }
    return {
        **{name: dg.MetadataValue.int(number) for name, number in numbers.items()},
        "new version": dg.MetadataValue.bool(built.is_new),
        "file": dg.MetadataValue.path(version.path),
    }
