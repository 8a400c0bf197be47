"""The own rows of a month that is closed: read again, as the books know them.

Books keep only the own rows that differ. Not here: how they are written (closing.write).
"""

from typing import Final

import duckdb

from pipelines.core.errors import ConfigurationError
from pipelines.finance import own_books
from pipelines.finance.closing.write import OwnRows
from pipelines.finance.inputs import read_inputs
from pipelines.finance.mapping import Mapping
from pipelines.finance.reconcile.closed_rows import CREATE_HIDDEN
from pipelines.finance.reconcile.own.all_sources import read_third_sides
from pipelines.finance.reconcile.own.third_side import ThirdSide
from pipelines.finance.reconcile.views import create_row_views
from pipelines.metadata.tables import Close
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row, fetch_rows

SOURCES: Final = """
SELECT
    sources.source, sources.connection, sources.against, sources.place, sources.sha256,
    sources.rows, sources.not_understood, sources.match_by AS "matched by", sources.matched,
    coalesce(differing.subjects, 0) AS "matched, but different", sources.evaluated, sources.reason,
    strftime(sources.read_at, '%Y-%m-%dT%H:%M:%SZ') AS read_at
FROM reconciliation.own_sources AS sources
LEFT JOIN (
    SELECT breaks.own_source AS source, count(DISTINCT breaks.subject) AS subjects
    FROM reconciliation.breaks AS breaks
    WHERE breaks.gone_at IS NULL AND NOT regexp_matches(
        breaks.cause, '^(missing in|only in|own rows without)'
    )
    GROUP BY breaks.own_source
) AS differing USING (source)
ORDER BY sources.source
"""


def read_own_rows(
    stores: Stores, db: duckdb.DuckDBPyConnection, close: Close, mapping: Mapping | None
) -> OwnRows | None:
    """Read the sources that open books were compared with; None if the mapping has none.

    Raises ConfigurationError where one has changed since.
    """
    if mapping is None or not mapping.own:
        return None
    compared = fetch_rows(db, SOURCES)
    if close.connections is not None:
        compared = [row for row in compared if row["connection"] in close.connections]
    inputs = own_books.read_own_inputs(stores)
    db.execute(f"SET TimeZone = '{mapping.time_zone}'")
    sides = create_row_views(db, mapping)

    db.execute(CREATE_HIDDEN)
    db.execute("SET VARIABLE erased = $1", [list(read_inputs(stores).erased)])
    own_books.let_spill(stores, db)
    read = read_third_sides(db, mapping, sides, inputs, close.connections)
    by_name = {third_side.name: third_side for third_side in read}
    db.execute("SET TimeZone = 'UTC'")
    queries = []
    for row in compared:
        if row["evaluated"]:
            third_side = by_name[row["source"]]
            _require_same(close, row, third_side)
            queries.append(third_side.rows_of_month())
    return OwnRows(compared, queries)


def _require_same(close: Close, row: Row, third_side: ThirdSide) -> None:
    """Raise ConfigurationError unless a source has the rows that the books were compared with."""
    if third_side.sha256 != row["sha256"]:
        why = third_side.problem or "they changed since the books were made"
        raise ConfigurationError(
            f"{close.month:%Y-%m} cannot be closed: own books {row['source']}: {why}. Nothing was "
            "written.",
            "Run `partner-sync reconcile`, review their breaks, then close the month.",
        )
