"""Opens books with a version of the warehouse: names are joined.

`open_books`: the published books with their version, which may be older than the published one.
`open_reconciled`: the same, where a table of them has to be there. `open_published`: the published
version, with books only if they are of it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

import duckdb

from pipelines.core.errors import ConfigurationError
from pipelines.core.text import printable
from pipelines.finance.books_state import why_outdated
from pipelines.finance.doubt import Doubt
from pipelines.finance.mapping import REMEDY, parse_mapping
from pipelines.finance.reconcile.statements import RULES
from pipelines.finance.reconcile.views import create_pair_view, create_row_views
from pipelines.versions.stores import Stores
from pipelines.warehouse.books import BooksFolder
from pipelines.warehouse.version_files import Version, Warehouse

MAPPING: Final = "SELECT books.mapping FROM meta.books AS books"
SHOWN_VALUES: Final = 12
EVALUATED: Final = """
SELECT rules.evaluated, rules.reason
FROM reconciliation.rules AS rules
WHERE rules.rule = $table
"""
# What options can be, each in its column. What is given comes first, then what contains it.
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
    SELECT lists.connection
    FROM reconciliation.lists AS lists
    UNION ALL BY NAME
    SELECT rules.rule
    FROM reconciliation.rules AS rules
    WHERE list_contains({rules}, rules.rule) OR rules.own_source IS NOT NULL
    UNION ALL BY NAME
    SELECT
        unnest(['high', 'medium', 'low']) AS severity,
        unnest(['open', 'assigned', 'resolved']) AS state
)
SELECT known.{name} AS value
FROM known
WHERE value IS NOT NULL
GROUP BY value
ORDER BY value <> $value, NOT contains(lower(value), lower($value)), value
LIMIT $limit
"""


Opened = tuple[Version, duckdb.DuckDBPyConnection]
"""A version, and a connection to it and to its books."""


@contextmanager
def open_books(stores: Stores) -> Iterator[Opened]:
    """Open the published books with their version; without books, the published version.

    Raises PartnerSyncError where nothing is published, or what is published cannot be read.
    """
    with open_books_of(stores.warehouse) as opened:
        yield opened


@contextmanager
def open_books_of(warehouse: Warehouse) -> Iterator[Opened]:
    """Do as `open_books` for files alone, which may have been pulled. Raises the same."""
    folder = BooksFolder(warehouse)
    books = folder.published()
    version = warehouse.version(books.version) if books else None
    version = version or warehouse.require_published()
    with folder.open(books, version) as db:
        yield version, db


def require_books(stores: Stores) -> Version:
    """Return the version of the published books. Raises PartnerSyncError without any."""
    version = stores.warehouse.require_published()
    books = BooksFolder(stores.warehouse).published()
    if books is None:
        raise ConfigurationError(
            f"There are no books of version {version.number}: usage was not compared with billing.",
            "Run `partner-sync reconcile`.",
        )
    return stores.warehouse.version(books.version)


def read_age(stores: Stores) -> list[Doubt]:
    """Return why the books show less than is known, if they do. Raises PartnerSyncError."""
    age = why_outdated(stores)
    return [Doubt("", age, "Run `partner-sync reconcile`.")] if age else []


@contextmanager
def open_published(stores: Stores) -> Iterator[Opened]:
    """Open the published version with the published books, if they are of this version.

    Raises as `open_books` does.
    """
    folder = BooksFolder(stores.warehouse)
    version = stores.warehouse.require_published()
    books = folder.published()
    if books is not None and books.version != version.number:
        books = None
    with folder.open(books, version) as db:
        yield version, db


@contextmanager
def open_reconciled(
    stores: Stores, table: str, options: Mapping[str, str] | None = None
) -> Iterator[Opened]:
    """Open the published books.

    Raises PartnerSyncError without books, ConfigurationError without this table, which says why,
    and with possible values for one that an option cannot have.
    """
    require_books(stores)
    with open_books(stores) as (version, db):
        _require_evaluated(db, version, table)
        for name, value in (options or {}).items():
            if value:
                _require_known(db, name, value)
        yield version, db


def create_rows(db: duckdb.DuckDBPyConnection) -> None:
    """Create temporary views of all rows of both sides, by the mapping of the open books.

    Raises PartnerSyncError, duckdb.Error.
    """
    ((text,),) = db.execute(MAPPING).fetchall()
    create_row_views(db, parse_mapping(text))
    with suppress(duckdb.CatalogException):  # pairs were not evaluated
        create_pair_view(db)


def _require_evaluated(db: duckdb.DuckDBPyConnection, version: Version, table: str) -> None:
    evaluated = False
    reason = "Its books do not have it."
    remedy = "Run `partner-sync reconcile`."
    with suppress(ValueError):  # no row
        ((evaluated, reason),) = db.execute(EVALUATED, {"table": table}).fetchall()
        remedy = "" if "partner-sync" in (reason or "") else REMEDY
    if not evaluated:
        text = f"Version {version.number} has no {table} of reconciliation. {reason}"
        raise ConfigurationError(text, remedy)


def _require_known(db: duckdb.DuckDBPyConnection, name: str, value: str) -> None:
    """Raise ConfigurationError for a value that no option of this name can have."""
    query = POSSIBLE.format(rules=list(RULES), name=name)
    possible = db.execute(query, {"value": value, "limit": SHOWN_VALUES}).fetchall()
    if (value,) in possible:
        return
    text = ", ".join(printable(each, 40) for (each,) in possible)
    more = ", …" if len(possible) == SHOWN_VALUES else ""
    raise ConfigurationError(
        f"The published books have no {name} `{printable(value)}`. "
        f"Possible values: {text or 'none'}{more}."
    )
