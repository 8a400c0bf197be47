"""Here: what checks know of the published version and its books, read once.

Not here: what they ask the metadata database (context).
"""

import json
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

import duckdb
import msgspec

from pipelines.config.types import DeclaredType
from pipelines.core.errors import PartnerSyncError
from pipelines.core.finding import Finding
from pipelines.core.text import quote_identifier, quote_text
from pipelines.finance.reports.alerts import QUERIES as ALERT_QUERIES
from pipelines.finance.reports.alerts import Alerts, judge_alerts
from pipelines.finance.reports.queries import read_figures
from pipelines.warehouse.books import Books, BooksFolder
from pipelines.warehouse.duckdb_file import fetch_rows
from pipelines.warehouse.formats import read_format
from pipelines.warehouse.memory_limit import readable_error
from pipelines.warehouse.version_files import Version, Warehouse

SCAN_IDS: Final = "SELECT loads.scan_id FROM meta.loads AS loads"
# Each current row of one table. Items of arrays have tables of their own: they are no rows of the
# list, but may have values that do not fit.
CURRENT: Final = """
SELECT
    '{stream}' AS stream, history._connection AS connection, {is_list} AS is_list,
    history._extra IS NOT NULL AND len(list_filter(
        json_keys(history._extra), lambda name: NOT list_contains({rounded}, name)
    )) > 0 AS does_not_fit
FROM history.{table} AS history
WHERE history._valid_to IS NULL
"""
# All tables are read once, and each list is counted over all of its tables.
LISTS: Final = """
WITH tables AS ({current}), sums AS (
    SELECT
        tables.connection, tables.stream, count(*) FILTER (tables.is_list) AS rows,
        count(*) FILTER (tables.does_not_fit) AS not_fitting
    FROM tables
    GROUP BY ALL
)
SELECT
    loads.connection, loads.stream, loads.complete, loads.ended_at, loads.sentence,
    coalesce(sums.rows, 0) AS rows, coalesce(sums.not_fitting, 0) AS not_fitting,
    freshness.last_complete_at AS complete_at,
    (SELECT count(*) FROM quarantine.records AS records
        WHERE (records.connection, records.stream) = (loads.connection, loads.stream)
    ) AS in_quarantine,
    (SELECT coalesce(list(reported), []) FROM meta.load_findings AS reported
        WHERE reported.scan_id = loads.scan_id) AS findings
FROM meta.freshness AS freshness
JOIN meta.loads AS loads ON loads.scan_id = freshness.last_scan_id
LEFT JOIN sums ON (sums.connection, sums.stream) = (loads.connection, loads.stream)
"""
# Lists of which another connection has most rows, with the same content. Of each page the first few
# rows are compared: 0.4 s for 3 million rows of three connections.
SHARED: Final = """
WITH sample AS (
    SELECT history._connection, history._digest
    FROM history.{table} AS history
    WHERE history._valid_to IS NULL AND history._row < 10
), compared AS (
    SELECT sample._connection, count(*) AS rows FROM sample GROUP BY ALL
)
SELECT
    sample._connection AS connection, others._connection AS other, {stream} AS stream,
    compared.rows AS compared
FROM sample
JOIN compared ON compared._connection = sample._connection
JOIN history.{table} AS others
    ON others._digest = sample._digest AND others._connection <> sample._connection
WHERE others._valid_to IS NULL
GROUP BY ALL
HAVING count(*) > compared.rows / 2
ORDER BY ALL
"""
# Lists whose amounts are added up. Others, such as one of plans, may be alike for every account.
ADDED_UP: Final = ("usage", "billing")
# Fields of a row itself whose columns may hold the nearest value, with the exact one in `_extra`.
ROUNDING: Final = """
SELECT columns.column_name, columns.steps
FROM meta.columns AS columns
WHERE columns.table_name = ? AND columns.part = 'value'
    AND columns.type SIMILAR TO '(BIGINT|DECIMAL|TIMESTAMP).*' AND columns.type NOT LIKE '%[]'
"""
# The types that settings gave to fields, as the version has applied them.
DECLARED: Final = """
SELECT columns.stream, columns.path, columns.declared
FROM meta.columns AS columns
WHERE columns.part = 'value'
"""


class ListName(NamedTuple):
    """One list of one connection."""

    connection: str
    stream: str

    def __str__(self) -> str:
        return f"{self.connection}/{self.stream}"


class LoadedList(msgspec.Struct, frozen=True):
    """What the published version holds of one list, and how its newest scan ended.

    `complete_at` is the end of the newest complete scan. `rows` counts the current rows, of every
    scan, `not_fitting` those with values that their columns do not take. `types` are those that
    settings gave the fields of single values, as they were applied.
    """

    connection: str
    stream: str
    complete: bool
    ended_at: datetime
    rows: int
    sentence: str
    complete_at: datetime | None
    in_quarantine: int
    not_fitting: int
    findings: list[Finding]
    types: dict[str, DeclaredType | None] = {}


class SharedList(NamedTuple):
    """A list of one connection of which another one has most rows, of so many `compared` ones."""

    connection: str
    other: str
    stream: str
    compared: int


@dataclass(frozen=True)
class Published:
    """The published version.

    `problem` says why it cannot be read, empty if it can; `remedy` is what cures that, if it is
    known. `shared` are lists whose rows two connections have. `format` is the number of its format,
    None where it cannot be read. `alerts` are those of the published `books`; None: there are none
    of this version, or `books_problem` says why they cannot be read. `books_age` is why they show
    less than is known.
    """

    version: Version | None = None
    problem: str = ""
    remedy: str = ""
    scan_ids: frozenset[str] = frozenset()
    loaded: dict[ListName, LoadedList] = field(default_factory=dict)
    shared: list[SharedList] = field(default_factory=list)
    format: int | None = None
    books: Books | None = None
    alerts: Alerts | None = None
    books_problem: str = ""
    books_age: str = ""


def read_published(warehouse: Warehouse, break_amount: Decimal) -> Published:
    """Read the published version; a break of this amount or more is a large one (0: none is)."""
    version = None
    try:
        version = warehouse.published()
        if version is None:
            return Published()
        with warehouse.open(version.number) as db:
            number = read_format(db)
            scan_ids = frozenset(scan_id for (scan_id,) in db.execute(SCAN_IDS).fetchall())
            loaded = _read_lists(db)
            shared = _read_shared(db, loaded)
            published = Published(
                version, scan_ids=scan_ids, loaded=loaded, shared=shared, format=number
            )
    except (PartnerSyncError, duckdb.Error) as error:
        remedy = error.remedy if isinstance(error, PartnerSyncError) else ""
        return Published(version, readable_error(error), remedy)
    return _with_books(published, BooksFolder(warehouse), break_amount)


def _with_books(published: Published, folder: BooksFolder, break_amount: Decimal) -> Published:
    """Return the published version with its books. Those of another version say nothing of it."""
    books = None
    try:
        books = folder.published()
        # While new books are made, or cannot be made, those of an older version are published.
        if books is None or published.version is None or books.version != published.version.number:
            return replace(published, books=books)
        with folder.open_alone(books) as db:
            db.execute("SET VARIABLE large_break = $1", [break_amount or None])
            figures = read_figures(db, books.version, ALERT_QUERIES)
    except (PartnerSyncError, duckdb.Error) as error:
        return replace(published, books=books, books_problem=readable_error(error))
    return replace(published, books=books, alerts=judge_alerts(figures))


def _read_lists(db: duckdb.DuckDBPyConnection) -> dict[ListName, LoadedList]:
    selects = []
    for (table,) in db.execute("SHOW TABLES FROM history").fetchall():
        stream, array, _items = table.partition("__")
        select = CURRENT.format(
            stream=stream,
            table=quote_identifier(table),
            is_list=not array,
            rounded=_rounded(db, table),
        )
        selects.append(select)
    rows = fetch_rows(db, LISTS.format(current=" UNION ALL ".join(selects)))
    loaded = msgspec.convert(rows, list[LoadedList])
    types = _declared_types(db)
    for load in loaded:
        load.types.update(types[load.stream])
    return {ListName(load.connection, load.stream): load for load in loaded}


def _read_shared(
    db: duckdb.DuckDBPyConnection, loaded: dict[ListName, LoadedList]
) -> list[SharedList]:
    """Return which lists two connections have, though their accounts may be two."""
    shared = list[SharedList]()
    for stream in ADDED_UP:
        connections = [name.connection for name in loaded if name.stream == stream]
        if len(connections) > 1:
            query = SHARED.format(table=quote_identifier(stream), stream=quote_text(stream))
            shared += [SharedList(*row) for row in db.execute(query).fetchall()]
    return shared


def _declared_types(
    db: duckdb.DuckDBPyConnection,
) -> defaultdict[str, dict[str, DeclaredType | None]]:
    """Return the types that settings gave to fields, by stream and field."""
    types = defaultdict[str, dict[str, DeclaredType | None]](dict)
    # A version of an older format does not record them.
    with suppress(duckdb.BinderException):
        for stream, path, declared in db.execute(DECLARED).fetchall():
            field = path.removeprefix("$").removeprefix(".").replace("[*]", "[]")
            if declared:
                types[stream][field] = DeclaredType.model_validate_json(declared)
            else:
                types[stream][field] = None
    return types


def _rounded(db: duckdb.DuckDBPyConnection, table: str) -> str:
    """Return the expression of the fields of a row whose columns hold a rounded value, if any."""
    fields = []
    for name, text in db.execute(ROUNDING, [table]).fetchall():
        steps = [None, *json.loads(text)]
        is_of_row = len(steps) > 1 and steps[-2] is None
        # DuckDB cannot parse a statement with a NUL.
        if is_of_row and "\0" not in steps[-1]:
            column = quote_identifier(name)
            fields.append(f"if(history.{column} IS NULL, NULL, {quote_text(steps[-1])})")
    return f"[{', '.join(fields)}]::VARCHAR[]"
