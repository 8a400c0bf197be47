"""Here: all sources of own books of a mapping, in open books. Not here: one source (third_side)."""

from collections.abc import Collection

import duckdb

from pipelines.finance.mapping import Mapping as RoleMapping
from pipelines.finance.reconcile.normalize import Sides
from pipelines.finance.reconcile.own import statements as sql
from pipelines.finance.reconcile.own.inputs import OwnInputs
from pipelines.finance.reconcile.own.left_out import others_of
from pipelines.finance.reconcile.own.rows import OwnTable, read_scales, scales_of_service
from pipelines.finance.reconcile.own.third_side import ThirdSide


def read_third_sides(
    db: duckdb.DuckDBPyConnection,
    mapping: RoleMapping,
    sides: Sides,
    inputs: OwnInputs,
    connections: Collection[str] | None = None,
) -> list[ThirdSide]:
    """Read the sources of own books of connections (None: of all). Raises duckdb.Error."""
    third_sides = []
    for number, (name, source) in enumerate(mapping.own.items()):
        if connections is not None and source.connection not in connections:
            continue
        scales = read_scales(scales_of_service(db, source.against))
        table = OwnTable(f"own_{number}", source, mapping.time_zone, scales)
        third_side = ThirdSide(db, name, table, others_of(mapping, source))
        third_side.read(sides, inputs)
        third_sides.append(third_side)
    return third_sides


def create_own_tables(db: duckdb.DuckDBPyConnection) -> None:
    """Create the tables of own books in open books, with the type of amounts of breaks."""
    rows = db.sql("SELECT rows.amount FROM reconciliation.break_rows AS rows")
    db.execute(sql.CREATE.format(amount=rows.types[0]))
