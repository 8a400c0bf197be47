"""Assets behind `raw`: the tables of the warehouse and the published version, without partitions.

A version holds all days and connections, so one step builds all of it.
"""

from collections.abc import Iterator

import dagster as dg

from assets.raw import raw_key
from assets.resources import HomeResource, LogProgress, failure
from pipelines.app.session import AppSession
from pipelines.app.sync import build_version
from pipelines.config.settings import Settings
from pipelines.core.text import quote_identifier
from pipelines.publish.build import BuildResult
from pipelines.warehouse.protocol import Version

PUBLISHED = dg.AssetKey(["published", "warehouse"])
NOTHING = "Nothing was published: no list has been read yet."
TABLES = "SELECT views.view_name FROM duckdb_views() AS views WHERE views.schema_name = 'current'"
Metadata = dict[str, dg.MetadataValue]


def table_key(stream: str) -> dg.AssetKey:
    """Return the key of a stream's table in the warehouse."""
    return dg.AssetKey(["warehouse", stream])


def warehouse_assets(settings: Settings) -> dg.AssetsDefinition:
    """Return the step that builds and publishes a version from every scan that waits for it."""
    streams = list(settings.all_streams())

    @dg.multi_asset(
        name="build", specs=[*map(_table_spec, streams), _published_spec(streams)], can_subset=False
    )
    def build(
        context: dg.AssetExecutionContext, home: HomeResource
    ) -> Iterator[dg.MaterializeResult[None]]:
        with home.session() as session:
            built = build_version(session, LogProgress(context.log))
            if built.version is None:
                raise failure(NOTHING, "Materialize raw/* of today first.")
            rows = count_rows(session, built.version)
        for stream in (name for name in streams if name in rows):
            count = dg.MetadataValue.int(rows[stream])
            yield dg.MaterializeResult(
                asset_key=table_key(stream), metadata={"dagster/row_count": count}
            )
        yield dg.MaterializeResult(
            asset_key=PUBLISHED, metadata=build_metadata(built, built.version)
        )

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
    )


def count_rows(session: AppSession, version: Version) -> dict[str, int]:
    """Return the current rows of each stream that has a table in a version."""
    with session.warehouse.open(version.number) as db:
        names = [str(name) for (name,) in db.sql(TABLES).fetchall()]
        counts = {}
        for name in names:
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
