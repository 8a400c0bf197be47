"""Reads the tables of reconciliation in the published version, where it has them."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any, Final, NamedTuple

import duckdb

from pipelines.app.session import AppSession
from pipelines.config.mapping import REMEDY
from pipelines.core.errors import ConfigurationError
from pipelines.core.text import printable
from pipelines.reconcile.statements import RULES
from pipelines.warehouse.duckdb_file import Version

Row = dict[str, Any]
SHOWN_VALUES: Final = 12
EVALUATED: Final = """
SELECT rules.evaluated, rules.reason
FROM reconciliation.rules AS rules
WHERE rules.rule = $table
"""
VALUES: Final = {
    "rule": f"SELECT unnest({list(RULES)}) AS value",
    "partner": "SELECT unnest([partners.partner, partners.name]) AS value FROM "
    "reconciliation.partners AS partners UNION ALL "
    "SELECT breaks.partner FROM reconciliation.breaks AS breaks",
    "month": "SELECT strftime(summary.month, '%Y-%m') AS value FROM "
    "reconciliation.summary AS summary UNION ALL "
    "SELECT strftime(breaks.month, '%Y-%m') FROM reconciliation.breaks AS breaks",
    "severity": "SELECT unnest(['high', 'medium', 'low']) AS value",
    "state": "SELECT unnest(['open', 'assigned', 'resolved']) AS value",
    "break_id": "SELECT breaks.break_id AS value FROM reconciliation.breaks AS breaks",
    "currency": "SELECT summary.currency AS value FROM reconciliation.summary AS summary",
}
"""Queries for the values that each option can have."""
POSSIBLE: Final = """
SELECT known.value
FROM ({values}) AS known
WHERE known.value IS NOT NULL
GROUP BY known.value
ORDER BY known.value <> $value, known.value
LIMIT $limit
"""


class Reconciled(NamedTuple):
    """The published version, open."""

    version: Version
    db: duckdb.DuckDBPyConnection


@contextmanager
def open_reconciled(session: AppSession, table: str) -> Iterator[Reconciled]:
    """Open the published version. Raises ConfigurationError without this table, which says why."""
    version, evaluated = session.warehouse.require_published(), False
    with closing(session.warehouse.open(version.number)) as db:
        reason, remedy = "It was built before there was any.", "Run `partner-sync versions build`."
        with suppress(duckdb.CatalogException):
            ((evaluated, reason),) = db.execute(EVALUATED, {"table": table}).fetchall()
            remedy = "" if "partner-sync" in (reason or "") else REMEDY
        if not evaluated:
            text = f"Version {version.number} has no {table} of reconciliation. {reason}"
            raise ConfigurationError(text, remedy)
        yield Reconciled(version, db)


def select(db: duckdb.DuckDBPyConnection, query: str, bound: Row) -> list[Row]:
    """Return the rows of a query by column."""
    found = db.execute(query, bound)
    names = [name for name, *_ in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def require_known(db: duckdb.DuckDBPyConnection, values: Mapping[str, str]) -> None:
    """Raise ConfigurationError, with possible values, for one that an option cannot have."""
    for name, value in values.items():
        bound = {"value": value, "limit": SHOWN_VALUES}
        found = db.execute(POSSIBLE.format(values=VALUES[name]), bound).fetchall()
        possible = [each for (each,) in found]
        if value not in possible:
            text = ", ".join(printable(each, 40) for each in possible)
            more = ", …" if len(possible) == SHOWN_VALUES else ""
            raise ConfigurationError(
                f"There is no {name} `{printable(value)}` in the published version. "
                f"Possible values: {text or 'none'}{more}."
            )
