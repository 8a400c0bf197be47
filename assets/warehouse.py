"""Assets behind `raw`: the tables of the warehouse and the published version, without partitions.

A version holds all days and connections, so one step builds all of it.
"""

from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Any

import dagster as dg

from assets.checks import check_results, check_specs
from assets.keys import PUBLISHED, REPORT, raw_key, reconciliation_key, table_key
from assets.resources import HomeResource, LogProgress, failure
from pipelines.app.checkup import current_version, run_checks
from pipelines.app.notify import notify_summary
from pipelines.app.report import read_published, write_report
from pipelines.app.session import AppSession
from pipelines.app.sync import build_version
from pipelines.config.settings import Settings
from pipelines.core.text import quote_identifier
from pipelines.publish.build import BuildResult
from pipelines.reconcile.statements import TABLES, read_statement
from pipelines.warehouse.duckdb_file import Version

SHOWN_TABLES = {*TABLES}
Result = dg.MaterializeResult[None] | dg.AssetCheckResult


def warehouse_assets(settings: Settings) -> dg.AssetsDefinition:
    """Return the step that builds and publishes a version from every scan that waits for it."""
    streams = list(settings.streams)

    @dg.multi_asset(
        name="build",
        specs=[
            *map(_table_spec, streams),
            *(_reconciliation_spec(table, streams) for table in SHOWN_TABLES),
            _published_spec(streams),
            _report_spec(),
        ],
        check_specs=list(check_specs(settings)),
        can_subset=True,  # so that the checks can be evaluated without a build
    )
    def build(context: dg.AssetExecutionContext, home: HomeResource) -> Iterator[Result]:
        with home.session() as session:
            built = None
            if context.selected_asset_keys:
                built = build_version(session, LogProgress(context.log).note)
            seen = current_version(session)
            unknown = seen.not_evaluated
            evaluated = () if unknown is None else SHOWN_TABLES - unknown.keys()
            assets = list(_asset_results(session, built, evaluated)) if built else []
            checks = run_checks(session, seen)
        yield from (each for each in assets if each.asset_key in context.selected_asset_keys)
        yield from check_results(context.selected_asset_check_keys, checks, seen)
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


def _reconciliation_spec(table: str, streams: list[str]) -> dg.AssetSpec:
    return dg.AssetSpec(
        reconciliation_key(table),
        deps=[table_key(stream) for stream in streams],
        description=f"`reconciliation.{table}`: {read_statement(table).question}",
        group_name="reconciliation",
        kinds={"duckdb", "table"},
        skippable=True,  # where it cannot be evaluated, there is no table
    )


def _published_spec(streams: list[str]) -> dg.AssetSpec:
    return dg.AssetSpec(
        PUBLISHED,
        deps=[*map(table_key, streams), *map(reconciliation_key, SHOWN_TABLES)],
        description="The file that analysts open: all streams and connections, at one moment.",
        group_name="published",
        kinds={"duckdb", "file"},
        skippable=True,  # the checks are evaluated without it, and there may be no version yet
    )


def _report_spec() -> dg.AssetSpec:
    return dg.AssetSpec(
        REPORT,
        deps=[PUBLISHED],
        description="The finance report of the published version: one HTML page.",
        group_name="reports",
        kinds={"html"},
        skippable=True,  # there may be no version yet
    )


def _asset_results(
    session: AppSession, built: BuildResult, evaluated: Collection[str]
) -> Iterator[dg.MaterializeResult[None]]:
    """Yield a result for each table of the published version with its current rows, and for it."""
    if built.version is None:
        return
    with closing(session.warehouse.open(built.version.number)) as db:
        tables = {name for (name,) in db.execute("SHOW TABLES FROM current").fetchall()}
        for stream in tables & session.settings.streams.keys():
            table = f"current.{quote_identifier(stream)}"
            ((rows,),) = db.execute(f"SELECT count(*) FROM {table}").fetchall()
            metadata = {"dagster/row_count": rows}
            yield dg.MaterializeResult(asset_key=table_key(stream), metadata=metadata)
        for table in evaluated:
            sql = f"SELECT count(*) FROM reconciliation.{table}"
            metadata = {"dagster/row_count": db.execute(sql).fetchall()[0][0]}
            yield dg.MaterializeResult(asset_key=reconciliation_key(table), metadata=metadata)
    yield dg.MaterializeResult(asset_key=PUBLISHED, metadata=build_metadata(built, built.version))
    page = dg.MetadataValue.path(write_report(session, read_published(session)))
    yield dg.MaterializeResult(asset_key=REPORT, metadata={"page": page})
    if built.is_new:
        notify_summary(session)


def nothing_published(built: BuildResult) -> dg.Failure:
    """Return the failure of a first build that has no version to show."""
    reasons = list(built.failed.values())
    reasons += [result.held for result in built.results if result.held]
    if reasons:
        return failure("\n".join(["Nothing was published.", *reasons]))
    return failure("Nothing was published: no list has been read yet.", "Materialize raw/* first.")


def build_metadata(built: BuildResult, version: Version) -> dict[str, Any]:
    """Return what a build did, in rows over all streams. Held and failed scans are checks too."""
    held = sum(result.held is not None for result in built.results)
    rows = {
        f"rows {kind}": sum(getattr(result, kind) for result in built.results)
        for kind in ("new", "changed", "deleted", "quarantined")
    }
    return {
        "version": version.number,
        "file": dg.MetadataValue.path(version.path),
        "new version": built.is_new,
        "scans loaded": len(built.results) - held,
        "scans held": held,
        "scans failed": len(built.failed),
        **rows,
    }
