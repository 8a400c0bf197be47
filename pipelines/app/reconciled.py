"""Reads the tables of reconciliation in the published version, where it has them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

import duckdb

from pipelines.app.session import AppSession
from pipelines.config.mapping import REMEDY
from pipelines.core.errors import ConfigurationError
from pipelines.core.text import printable
from pipelines.reconcile.statements import RULES
from pipelines.warehouse.duckdb_file import Version

SHOWN_VALUES: Final = 12
EVALUATED: Final = """
SELECT rules.evaluated, rules.reason
FROM reconciliation.rules AS rules
WHERE rules.rule = $table
"""
# What options can be, each in its column.
POSSIBLE: Final = """
WITH known AS (
    SELECT unnest([partners.partner, partners.name]) AS partner
    FROM reconciliation.partners AS partners
    UNION ALL BY NAME
    SELECT breaks.partner, breaks.break_id, strftime(breaks.month, '%Y-%m') AS month
    FROM reconciliation.breaks AS breaks
    UNION ALL BY NAME
    SELECT summary.partner, summary.currency, strftime(summary.month, '%Y-%m') AS month
    FROM reconciliation.summary AS summary
    UNION ALL BY NAME
    SELECT
        unnest({rules}) AS rule, unnest(['high', 'medium', 'low']) AS severity,
        unnest(['open', 'assigned', 'resolved']) AS state
)
SELECT known.{name} AS value
FROM known
WHERE value IS NOT NULL
GROUP BY value
ORDER BY value <> $value, NOT contains(lower(value), lower($value)), value
LIMIT $limit
"""


class Reconciled(NamedTuple):
    """The published version, open."""

    version: Version
    db: duckdb.DuckDBPyConnection


@contextmanager
def open_reconciled(
    session: AppSession, table: str, options: Mapping[str, str] | None = None
) -> Iterator[Reconciled]:
    """Open the published version.

    Raises ConfigurationError without this table, which says why, and with possible values for one
    that an option cannot have.
    """
    version, evaluated = session.warehouse.require_published(), False
    with session.warehouse.open(version.number) as db:
        reason, remedy = "It was built before there was any.", "Run `partner-sync versions build`."
        with suppress(duckdb.CatalogException):
            ((evaluated, reason),) = db.execute(EVALUATED, {"table": table}).fetchall()
            remedy = "" if "partner-sync" in (reason or "") else REMEDY
        if not evaluated:
            text = f"Version {version.number} has no {table} of reconciliation. {reason}"
            raise ConfigurationError(text, remedy)
        _require_known(db, {name: value for name, value in (options or {}).items() if value})
        yield Reconciled(version, db)


def _require_known(db: duckdb.DuckDBPyConnection, given: Mapping[str, str]) -> None:
    for name, value in given.items():
        query, bound = POSSIBLE.format(rules=list(RULES), name=name), {"value": value}
        found = db.execute(query, bound | {"limit": SHOWN_VALUES}).fetchall()
        if (value,) not in found:
            text = ", ".join(printable(each, 40) for (each,) in found)
            more = ", …" if len(found) == SHOWN_VALUES else ""
            raise ConfigurationError(
                f"The published version has no {name} `{printable(value)}`. "
                f"Possible values: {text or 'none'}{more}."
            )
