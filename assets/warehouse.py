"""Here: the step that does all that follows (`nightly.after_reading`), its assets, and exports.

They have no partitions: a version holds all days and connections, so one step builds all of it.
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from assets.automation import REBUILD_JOB
from assets.checks import check_results, check_specs
from assets.names import Names
from assets.resources import HomeResource, failure, home_in
from pipelines.app.checkup import current_version, run_checks
from pipelines.app.export import export_tables
from pipelines.app.nightly import after_reading, rebuild_with_books
from pipelines.app.results import SyncResult
from pipelines.app.session import AppSession
from pipelines.checks.published import Published
from pipelines.config.settings import Settings
from pipelines.core.text import quote_identifier
from pipelines.finance.reconcile.statements import TABLES, read_statement
from pipelines.finance.reconciled import open_published
from pipelines.versions.build import BuildResult
from pipelines.warehouse.version_files import Version

Result = dg.MaterializeResult[None] | dg.AssetCheckResult


def warehouse_assets(names: Names, settings: Settings) -> dg.AssetsDefinition:
    """Return the step that builds and publishes a version from every scan that waits for it."""

    @dg.multi_asset(
        name=names.of("publish_step"),
        specs=list(_specs(names, list(settings.streams))),
        check_specs=list(check_specs(names, settings)),
        # So that the job `checks` can evaluate the checks without a build.
        can_subset=True,
        required_resource_keys={names.resource},
        pool=names.resource,
    )
    def publish_step(context: dg.AssetExecutionContext) -> Iterator[Result]:
        assets = list[dg.MaterializeResult[None]]()
        result = None
        home = home_in(context, names)
        with home.session() as session:
            if context.selected_asset_keys:
                if context.run.job_name == names.of(REBUILD_JOB):
                    result = after_reading(session, rebuild_with_books)
                else:
                    result = after_reading(session)
                assets = list(_asset_results(names, session, result))
                published = result.published
                checks = result.checks
            else:
                published = current_version(session)
                checks = run_checks(session, published)
        for asset in assets:
            if asset.asset_key in context.selected_asset_keys:
                yield asset
        yield from check_results(names, context.selected_asset_check_keys, checks, published)
        if result is not None:
            raise_problems(home, result)

    return publish_step


def _specs(names: Names, streams: list[str]) -> Iterator[dg.AssetSpec]:
    """Yield what a build makes."""
    tables = [names.table(stream) for stream in streams]
    reconciliation = [names.reconciliation(table) for table in TABLES]
    for stream in streams:
        text = f"`current.{stream}` and `history.{stream}` of the published version."
        yield _spec(names, names.table(stream), [names.raw(stream)], text, {"duckdb", "table"})
    for table in TABLES:
        text = f"`reconciliation.{table}`: {read_statement(table).question}"
        yield _spec(names, names.reconciliation(table), tables, text, {"duckdb", "table"})
    text = "The file that analysts open: all streams and connections, at one moment."
    yield _spec(names, names.published, [*tables, *reconciliation], text, {"duckdb", "file"})
    text = "The finance report of the published version: one HTML page."
    yield _spec(names, names.report, [names.published], text, {"html"})


def _spec(
    names: Names, key: dg.AssetKey, deps: list[dg.AssetKey], text: str, kinds: set[str]
) -> dg.AssetSpec:
    """Return an asset that can be skipped: its table or the version may not exist."""
    return dg.AssetSpec(
        key,
        deps=deps,
        description=text,
        group_name=names.group(key.path[-2]),
        kinds=kinds,
        skippable=True,
    )


def _asset_results(
    names: Names, session: AppSession, result: SyncResult
) -> Iterator[dg.MaterializeResult[None]]:
    """Yield a result for each published table with its current rows, the version, the report."""
    built = result.build
    if built is None or built.version is None:
        return
    with open_published(session) as (_version, db):
        loaded = {name for (name,) in db.execute("SHOW TABLES FROM warehouse.current").fetchall()}
        tables = dict[dg.AssetKey, str]()
        for stream in session.settings.streams:
            if stream in loaded:
                tables[names.table(stream)] = f"current.{quote_identifier(stream)}"
        for table in _evaluated_tables(result.published, built.version):
            tables[names.reconciliation(table)] = f"reconciliation.{table}"
        for key, name in tables.items():
            ((rows,),) = db.execute(f"SELECT count(*) FROM {name}").fetchall()
            yield dg.MaterializeResult(asset_key=key, metadata={"dagster/row_count": rows})
    yield dg.MaterializeResult(
        asset_key=names.published, metadata=build_metadata(built, built.version)
    )
    if result.report:
        page = dg.MetadataValue.path(result.report)
        yield dg.MaterializeResult(asset_key=names.report, metadata={"page": page})


def _evaluated_tables(published: Published, version: Version) -> list[str]:
    """Return the tables of reconciliation that the published books have of a version."""
    if published.books is None or published.books.version != version.number:
        return []
    if published.alerts is None:
        return []
    return [table for table in TABLES if table not in published.alerts.not_evaluated]


def raise_problems(home: HomeResource, result: SyncResult) -> None:
    """Raise the failure of a step that has nothing to show, or that shows less than it should."""
    if result.build and result.build.version is None:
        raise nothing_published(result.build)
    if result.problems:
        problems = [f"{problem} {problem.remedy}".strip() for problem in result.problems]
        may_pass = any(problem.may_pass for problem in result.problems)
        text = "\n".join(["The version is published.", *problems])
        raise home.failure(text, may_pass=may_pass)


def nothing_published(built: BuildResult) -> dg.Failure:
    """Return the failure of a first build that has no version to show."""
    reasons = [*built.failed.values()]
    reasons += [loaded.held for loaded in built.results if loaded.held]
    if reasons:
        return failure("\n".join(["Nothing was published.", *reasons]))
    return failure("Nothing was published: no list has been read yet.", "Materialize raw/* first.")


def build_metadata(built: BuildResult, version: Version) -> dict[str, Any]:
    """Return what a build did, in rows over all streams. Held and failed scans are checks too."""
    held = sum(loaded.held is not None for loaded in built.results)
    return {
        "version": version.number,
        "file": dg.MetadataValue.path(version.path),
        "new version": built.is_new,
        "scans loaded": len(built.results) - held,
        "scans newly held": held,
        "scans failed": len(built.failed),
        "rows new": sum(loaded.new for loaded in built.results),
        "rows changed": sum(loaded.changed for loaded in built.results),
        "rows deleted": sum(loaded.deleted for loaded in built.results),
        "rows quarantined": sum(loaded.quarantined for loaded in built.results),
    }


class ExportConfig(dg.Config):
    """What to export to where, as for `partner-sync export`."""

    target: str = "csv"
    tables: list[str] | None = None


def export_asset(names: Names) -> dg.AssetsDefinition:
    """Return the asset of exported tables."""

    @dg.asset(
        key=names.exports,
        deps=[names.published],
        group_name=names.group("reports"),
        kinds={"file"},
        required_resource_keys={names.resource},
        pool=names.resource,
    )
    def export(context: dg.AssetExecutionContext, config: ExportConfig) -> None:
        """Tables of the published version. Materialize it by hand: no schedule does."""
        with home_in(context, names).session() as session:
            rows = export_tables(session, config.target, config.tables or ())
        shown = {row["table"]: f"{row['rows']} rows: {row['exported_to']}" for row in rows}
        context.add_output_metadata(shown)

    return export
