"""The asset `exports/tables`: tables of the published version in another format, when asked for."""

import dagster as dg

from assets.keys import EXPORTS, PUBLISHED
from assets.resources import HomeResource
from pipelines.app.export import export_tables


class ExportConfig(dg.Config):
    """What to export to where, as for `partner-sync export`."""

    target: str = "csv"
    tables: list[str] | None = None


@dg.asset(key=EXPORTS, deps=[PUBLISHED], group_name="reports", kinds={"file"})
def export(context: dg.AssetExecutionContext, config: ExportConfig, home: HomeResource) -> None:
    """Tables of the published version. Materialize it by hand: no schedule does."""
    with home.session() as session:
        rows = export_tables(session, config.target, config.tables or ())
    shown = {row["table"]: f"{row['rows']} rows: {row['exported_to']}" for row in rows}
    context.add_output_metadata(shown)
