"""Here: what checks know of the published version and its books, read once.

Not here: what they ask the metadata database (context).
"""

import json
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

import duckdb
import msgspec

from pipelines.config.types import DeclaredType
from pipelines.core.errors import PartnerSyncError
from pipelines.core.finding import Finding
from pipelines.core.text import quote_identifier, quote_text
from pipelines.finance.doubt import Doubt
from pipelines.finance.unread import notes_of, read_not_evaluated, read_unread
from pipelines.warehouse.books import Books, BooksFolder
from pipelines.warehouse.duckdb_file import Row, fetch_rows
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
# `above` are those of large amounts.
OPEN_BREAKS: Final = """
SELECT
    breaks.rule, coalesce(breaks.currency, 'no currency') AS currency, count(*) AS breaks,
    sum(breaks.difference) AS difference,
    count(*) FILTER (abs(breaks.difference) >= nullif($amount, 0)) AS above
FROM reconciliation.breaks AS breaks
WHERE breaks.state <> 'resolved' AND breaks.uncertain IS NULL
GROUP BY breaks.rule, breaks.currency
ORDER BY ALL
"""
# Closed months whose records changed since; the difference is by side and currency, if any.
CHANGED_MONTHS: Final = """
SELECT closes.month, closes.changed_records, closes.net_difference
FROM reconciliation.closes AS closes
WHERE closes.state = 'outdated'
ORDER BY closes.month
"""
# Values of bills that the mapping does not list; amounts by currency.
UNSEEN_VALUES: Final = """
SELECT
    unseen.connection, unseen.value, min(unseen.example) AS example,
    sum(unseen.bills)::BIGINT AS bills, bool_and(unseen.is_counted) AS is_counted,
    string_agg(concat_ws(' ', unseen.currency, unseen.amount), ', ' ORDER BY unseen.currency)
        AS amounts
FROM reconciliation.unseen_values AS unseen
GROUP BY unseen.connection, unseen.value
ORDER BY ALL
"""
UNKNOWN_CURRENCIES: Final = """
SELECT months.currency, sum(months.used_rows)::BIGINT AS used, sum(months.bills)::BIGINT AS bills
FROM reconciliation.summary AS months
ANTI JOIN reconciliation.currencies AS known USING (currency)
WHERE months.currency IS NOT NULL
GROUP BY months.currency
ORDER BY ALL
"""
READ_OTHERWISE: Final = """
SELECT
    lines.month, lines.currency, count(*) AS records, sum(lines.difference) AS difference
FROM reconciliation.read_otherwise AS lines
GROUP BY lines.month, lines.currency
ORDER BY ALL
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


@dataclass(frozen=True)
class Published:
    """The published version. `problem` says why it cannot be read, empty if it can.

    `not_evaluated` says of rules of reconciliation why; None: the version has none. `notes` are
    about others, without which breaks are known all the same. `open_breaks` are rows of
    OPEN_BREAKS, `changed_months` of CHANGED_MONTHS, and so on. `unread` are records that cannot be
    read. `format` is the number of its format, None where it cannot be read. All that is about
    reconciliation is of the published `books`; `books_problem` says why they cannot be read,
    `books_age` why they show less than is known.
    """

    version: Version | None = None
    problem: str = ""
    scan_ids: frozenset[str] = frozenset()
    loaded: dict[ListName, LoadedList] = field(default_factory=dict)
    not_evaluated: dict[str, str] | None = None
    notes: list[Doubt] = field(default_factory=list)
    open_breaks: list[Row] = field(default_factory=list)
    changed_months: list[Row] = field(default_factory=list)
    unseen_values: list[Row] = field(default_factory=list)
    unknown_currencies: list[Row] = field(default_factory=list)
    read_otherwise: list[Row] = field(default_factory=list)
    unread: list[Doubt] = field(default_factory=list)
    format: int | None = None
    books: Books | None = None
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
            published = Published(version, "", scan_ids, _read_lists(db), format=number)
    except (PartnerSyncError, duckdb.Error) as error:
        return Published(version, readable_error(error))
    return replace(published, **_read_books(BooksFolder(warehouse), version, break_amount))


def _read_books(folder: BooksFolder, version: Version, break_amount: Decimal) -> dict[str, Any]:
    """Return what the published books say, by the names of Published.

    Those of another version say nothing of this one.
    """
    members = dict[str, Any]()
    try:
        books = folder.published()
        if books is None:
            return members
        members["books"] = books
        # While new books are made, or cannot be made, those of an older version are published.
        if books.version != version.number:
            return members
        with folder.open_alone(books) as db:
            rules = read_not_evaluated(db)
            members["not_evaluated"] = {
                rule["rule"]: rule["reason"] for rule in rules if rule["is_needed"]
            }
            members["notes"] = notes_of(rules)
            # What was never evaluated has no table.
            with suppress(duckdb.CatalogException):
                members["changed_months"] = fetch_rows(db, CHANGED_MONTHS)
                members["unread"] = read_unread(db)
                members["open_breaks"] = fetch_rows(db, OPEN_BREAKS, {"amount": break_amount})
                members["unseen_values"] = fetch_rows(db, UNSEEN_VALUES)
                members["unknown_currencies"] = fetch_rows(db, UNKNOWN_CURRENCIES)
                members["read_otherwise"] = fetch_rows(db, READ_OTHERWISE)
    except (PartnerSyncError, duckdb.Error) as error:
        members["books_problem"] = readable_error(error)
    return members


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
