"""What a materialization shows of a stream's tables: columns, lineage, counts, never a row.

Here: metadata of `current/<stream>` and `history/<stream>`. Not here: their checks (landing).
"""

from collections.abc import Mapping

import dagster as dg

from assets import catalog
from assets.previews import preview
from pipelines.run import Evidence, Landing
from pipelines.warehouse.profile import Column, Profile

MOST = 200  # columns previewed; the schema has all
Metadata = Mapping[
    str, int | float | str | dg.MetadataValue | dg.TableSchema | dg.TableColumnLineage
]


def of_current(stream: str, evidence: Evidence) -> Metadata:
    """Return the current tables of a stream as Dagster shows them."""
    found = evidence.current
    if found is None:
        return {}
    rows = [{"table": name, "rows": count} for name, count in found.rows.items()]
    return {
        "dagster/row_count": found.rows[stream],
        "dagster/column_schema": schema(found),
        "dagster/column_lineage": _lineage(found, catalog.key("archive", stream)),
        "tables": preview(rows),
        "columns": preview([_counted(each, found) for each in found.own[:MOST]]),
    }


def of_history(stream: str, evidence: Evidence) -> Metadata:
    """Return the versions of a stream as Dagster shows them."""
    found = evidence.history
    if found is None:
        return {}
    names = {each.name for each in evidence.current.own} if evidence.current else set()
    current = catalog.key("current", stream)
    deps = {
        each.name: [dg.TableColumnDep(current, each.name)]
        for each in found.own
        if each.name in names
    }
    return {
        "dagster/row_count": found.rows[stream],
        "dagster/column_schema": schema(found),
        "dagster/column_lineage": dg.TableColumnLineage(deps),
    }


def of_day(landing: Landing) -> Mapping[str, int | float | str]:
    """Return what one day's reading made of the current table; Dagster plots the numbers."""
    fold = landing.fold
    return {
        "dagster/partition_row_count": fold.rows,
        "rows": fold.rows,
        "rows missing": fold.missing,
        "rows read": fold.read,
        "duplicates replaced": fold.duplicates,
        "duplicates with other content": fold.conflicts,
        "rows set aside in quarantine": fold.quarantined,
        "manifest": fold.manifest,
    }


def of_versions(landing: Landing) -> Mapping[str, int | float | str]:
    """Return what one day's reading made of the versions: which began, which ended."""
    fold = landing.fold
    began = fold.added + fold.changed + fold.restated
    return {
        "dagster/partition_row_count": began,
        "records added": fold.added,
        "records changed": fold.changed,
        "records restated": fold.restated,
        "records gone": fold.gone,
    }


def schema(profile: Profile) -> dg.TableSchema:
    """Return the columns of a stream's own table, with what each is."""
    return dg.TableSchema(
        [dg.TableColumn(each.name, each.type, each.description or None) for each in profile.own]
    )


def _lineage(profile: Profile, archive: dg.AssetKey) -> dg.TableColumnLineage:
    """Return where in the archived records each column comes from, as a JSON path."""
    return dg.TableColumnLineage(
        {each.name: [dg.TableColumnDep(archive, each.path)] for each in profile.own if each.path}
    )


def _counted(column: Column, profile: Profile) -> dict[str, object]:
    rows, values = profile.rows[column.table], column.values or 0
    return {
        "column": column.name,
        "type": column.type,
        "from": column.path or "",
        "values": values,
        "empty": rows - values,
    }
