"""Assets `reports/<report>`: what finance reads, with its sums and its picture in Dagster.

Publication wrote the tables; here they are shown, and no partner is named: Dagster's log is kept
for ever. Not here: the page with all rows (`partner-sync report`).
"""

import base64
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from assets import catalog, published
from assets.partitions import PARTITIONS
from assets.previews import preview
from assets.resources import patient
from pipelines import run
from pipelines.reports import REPORTS, Report
from pipelines.run import ReportView
from pipelines.settings import load

Metadata = dict[str, str | int | dg.MetadataValue | dg.TableSchema]
SHELF = catalog.CODE / "reports"
NONE = "not written: reconcile is off, or nothing was published yet"


def key(report: str) -> dg.AssetKey:
    """Return the asset key of a report."""
    return catalog.key("reports", report)


def _spec(report: Report) -> dg.AssetSpec:
    place = catalog.Place(load().place.address, report.table)
    return dg.AssetSpec(
        key(report.name),
        deps=[published.KEY],
        description=f"{report.question}\n\n{catalog.WORDS['reports']}",
        group_name="reports",
        kinds={"duckdb", "table"},
        owners=catalog.OWNERS,
        tags={"for": "finance"},
        code_version=catalog.code_version(catalog.FLOORS["reports"]),
        metadata=catalog.metadata("reports", place, [_declared(report)]),
        skippable=True,
    )


def _declared(report: Report) -> Path:
    return SHELF / f"{report.name}.py"


@dg.multi_asset(
    name="report",
    specs=[_spec(each) for each in REPORTS],
    can_subset=True,
    partitions_def=PARTITIONS,
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def report(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
    """Show the reports of what is published: rows, sums, what they cannot say, and a picture."""
    names = [each.name for each in REPORTS if key(each.name) in context.selected_asset_keys]
    loaded = load()
    with patient(context, loaded):
        views = {each.report.name: each for each in run.report_views(loaded.place, names)}
    for name in names:
        metadata: Metadata = _metadata(views[name]) if name in views else {"status": NONE}
        yield dg.MaterializeResult(asset_key=key(name), metadata=metadata)


def _metadata(view: ReportView) -> Metadata:
    report = view.report
    columns = [dg.TableColumn(name, each.type, each.text) for name, each in report.columns.items()]
    shown: Metadata = {
        "dagster/row_count": view.rows,
        "dagster/column_schema": dg.TableSchema(columns),
        "rows": view.rows,
        "not evaluated": view.unsaid or "nothing is left out",
        "sums": preview(view.totals),
    }
    if view.picture and report.chart:
        image = base64.b64encode(view.picture).decode()
        words = f"![{report.chart.words}](data:image/png;base64,{image})"
        shown["picture"] = dg.MetadataValue.md(f"{report.chart.words}\n\n{words}")
    return shown
