"""COMMENTs of the published file: what every table of ours and every column beside the data means.

Here: the texts, and giving them to whatever has none. Not here: the columns of the records, whose
texts are the interface description's (interface) or say where a value comes from (dictionary).
"""

from collections.abc import Iterator, Mapping

import duckdb

from pipelines.warehouse.database import literal, quoted, together

TABLES = {
    "meta.folds": "each reading that was folded into the tables, in the order of the folds",
    "meta.freshness": "what the tables of each stream are made of, and when",
    "meta.proofs": "what is proven of each reading, and any doubt since",
    "meta.registry": "the shape of each stream's records and its columns' names, as they grew",
    "meta.schema_changes": "what changed about the columns, reading by reading",
    "meta.dictionary": "every table and column of this file, and where it comes from",
    "meta.awaiting": "readings that are held back until a person says a word",
    "meta.runs": "every run, what it cost and how it ended",
    "meta.requests": "every request that was sent to the service; no secret is in it",
    "meta.interface_changes": "what changed in the service's interface description, night by night",
    "meta.interface_differences": "where the records are not as the interface description says",
}
SCHEMAS = {
    "current": "{stream}: the records as they were read last",
    "past": "{stream}: versions of records that ended",
    "history": "{stream}: every version of every record, with the time in which it held",
    "quarantine": "records of {stream} that were read and that no table can hold, with the reason",
}
CHILD = "items of the array {array} of {schema}.{stream}, one row each"
MACRO = "the rows of {stream} as they were known at a moment"
LINEAGE = {
    "_connection": "the set of credentials whose list the record is in",
    "_key": "what identifies the record: its key, or a digest of all that it says",
    "_page": "SHA-256 of the archived page where this version was first read",
    "_row": "the record's place in that page, from 0",
    "_run": "the run that read that page",
    "_digest": "XXH3 (128 bits) of the record as it was sent: tells what changed",
    "idx": "the item's place in its array, from 0",
    "first_seen": "end of the reading that first had a record with this key",
    "changed_at": "end of the reading that brought this version",
    "missing_since": "end of the first reading that lacked the record; empty: it was there",
    "last_seen": "end of the last reading that had the record",
    "valid_from": "end of the reading that brought this version",
    "valid_to": "end of the reading that ended this version; empty: it holds",
    "why": "why the version ended: changed, missing, or restated (a number changed)",
}
_READING = {
    "connection": "the set of credentials that read it",
    "stream": "the list, and the name of its tables",
    "manifest": "the file below archive/manifests that lists the pages read",
    "run": "the run's identifier",
    "day": "the day that was asked for (UTC)",
    "grade": "SNAPSHOT, COMPLETE, COMPLETE_BY_COUNT or PARTIAL",
    "begun_at": "when it began",
    "ended_at": "when it ended",
}
_FOLDED = _READING | {
    "number": "the order of the folds",
    "read": "rows read, those read twice counted twice",
    "rows": "rows in current.<stream>",
    "missing": "of these rows, those that the reading lacked: see missing_since",
    "added": "records that were new, or back",
    "changed": "records that said something else, no number among it",
    "restated": "records of which a number changed",
    "gone": "records whose last version ended as they were missing twice",
    "quarantined": "rows set aside in quarantine.<stream>, each with its reason; not in rows",
    "duplicates": "rows read again, to prove that none was missed; each is in the table once",
    "conflicts": "rows set aside because another row has the same key and other values",
    "folded_at": "when the pages became these rows",
    "published_at": "when this file was published",
    "version": "the number in the name of this file",
}
_CALLED = _READING | {
    "outcome": "published, partial, failed or interrupted; empty: it ran then, or was killed",
    "requests": "requests sent",
    "refused": "requests answered with 429",
    "waited_ms": "milliseconds waited for the request budget",
    "took_ms": "milliseconds from sending to the answer's headers",
    "number": "the order in which they were recorded",
    "method": "GET or POST",
    "path": "of the address asked",
    "query": "of the address asked",
    "sent_at": "when it was sent",
    "status": "of the answer; empty where none came",
    "remaining": "requests left in the window, as the answer said",
    "request_id": "the service's own name of the request",
    "error": "in words, where it failed",
}
_COLUMNS = _READING | {
    "schema_name": "current, past, history, quarantine or meta",
    "table_name": "the table",
    "column_name": "the column; empty: the table as a whole, or what is in no table",
    "path": "where the value is in a record (JSON path)",
    "type": "TABLE, VIEW or the column's type",
    "source": "where the value is in a record (JSON path); empty: it is of our making",
    "first_manifest": "the reading that first had it: a file below archive/manifests",
    "description": "the text of the interface description, else what it is",
}
_DESCRIBED = _READING | {
    "path": "of the list",
    "what": "what is another",
    "before": "what the description said; empty: it was not there",
    "after": "what the description says; empty: it is gone",
    "meaning": "safe, breaking or opportunity",
    "first_seen_at": "when the description was first read",
    "field": "of the record, objects within it joined by dots",
    "described": "what the description says; empty: it says nothing of it",
    "found": "what the records have; empty: they do not have it",
    "seen_at": "when it was compared",
}
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "meta.folds": _FOLDED,
    "meta.freshness": _FOLDED,
    "meta.proofs": _READING
    | {
        "rows": "distinct rows read",
        "requests": "requests that the reading took",
        "repairs": "how often a page began with no known row, and the reading went back",
        "chains": "how often the list was read from its start",
        "inversions": "how often rows stood in another order than before",
        "key": "the field that identifies a record; empty: all that it says does",
        "key_inferred": "whether the key was found in the data rather than set",
        "assumption": "what has to hold for the proof to hold; empty: nothing has to",
        "flags": "what the service said against its own rules",
        "sentence": "what was proven, in words",
        "in_force": "whether it is the newest of its stream: what current.<stream> says",
        "doubt": "why the rows are not what they should be today; empty where nothing is wrong",
    },
    "meta.registry": _READING
    | {
        "number": "the order in which it grew",
        "shape": "what is at every path of the records, as JSON",
        "names": "the column of every path, as JSON",
        "recorded_at": "when it grew",
    },
    "meta.runs": _CALLED,
    "meta.requests": _CALLED | {"stream": "the list; empty for calls of none, as for a token"},
    "meta.schema_changes": _COLUMNS
    | {
        "what": "new, widened, text (values that fit no column are kept as text), discarded, "
        "stopped (no record has it any more), partly (none has it from a place on) or back",
        "before": "the type before; empty: there was no column, or it is the same",
        "after": "the type since; empty: there is no column, or it is the same",
        "count": "values that are kept as text or left out; records that had it, lack it, have it",
        "happened_at": "when the reading ended",
        "place": "partly: where in the list, as an offset, the records begin that lack it",
    },
    "meta.dictionary": _COLUMNS,
    "meta.awaiting": _READING
    | {
        "kind": "disappeared, schema or quarantine: of which verb of partner-sync the word is",
        "count": "rows gone, changes of columns, or rows set aside",
        "words": "what is the matter",
    },
    "meta.interface_changes": _DESCRIBED,
    "meta.interface_differences": _DESCRIBED,
}
_QUARANTINE = LINEAGE | {
    "_page": "SHA-256 of the archived page that has the record",
    "_run": "the run whose reading set it aside",
    "_key": "the record's key, where it can be read",
    "path": "the field to blame; empty: the record as a whole",
    "expected": "what a table could hold",
    "got": "what is there",
    "reason": "the same in words",
    "remedy": "who can do what about it, with the command where there is one",
    "quarantined_at": "when it was set aside",
}
BARE = """
SELECT * FROM (
    SELECT schema_name, table_name, NULL AS column_name, 'TABLE' AS kind FROM duckdb_tables()
    WHERE comment IS NULL AND NOT internal
    UNION ALL BY NAME
    SELECT schema_name, view_name AS table_name, 'VIEW' AS kind FROM duckdb_views()
    WHERE comment IS NULL AND NOT internal
    UNION ALL BY NAME
    SELECT schema_name, table_name, column_name, 'COLUMN' AS kind FROM duckdb_columns()
    WHERE comment IS NULL AND NOT internal
    UNION ALL BY NAME
    SELECT DISTINCT schema_name, function_name AS table_name, 'MACRO TABLE' AS kind
    FROM duckdb_functions() WHERE comment IS NULL AND NOT internal
) WHERE schema_name IN ('current', 'past', 'history', 'quarantine', 'meta') ORDER BY ALL
"""
LAKE_VIEWS = """
SELECT schema_name, view_name FROM duckdb_views() JOIN duckdb_databases() USING (database_name)
WHERE type = 'ducklake' AND NOT duckdb_views.internal
"""
SAID = "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE schema_name = 'current'"


def tell(database: duckdb.DuckDBPyConnection) -> None:
    """Give every table, view, macro and column of ours that has no COMMENT its own."""
    bare = database.execute(BARE).fetchall()
    said = {(table, column): text for table, column, text in database.execute(SAID).fetchall()}
    statements = []
    shown = _lake_shows(database)
    for schema, table, column, kind in bare:
        if shown and (kind == "MACRO TABLE" or ((schema, table) in shown and column)):
            continue
        text = _column(schema, table, column) if column else _whole(schema, table, kind)
        # Ended versions and views have the columns of the current table.
        text = text or (said.get((table.removesuffix("_seen"), column)) if column else None)
        if text:
            name = quoted(schema, table, column) if column else quoted(schema, table)
            statements.append(f"COMMENT ON {kind} {name} IS {literal(text)}")
    together(database, statements)


def _lake_shows(database: duckdb.DuckDBPyConnection) -> set[tuple[str, str]]:
    """Return a lake's views: it takes no comments on their columns, and none on macros."""
    return set(database.execute(LAKE_VIEWS).fetchall())


def _column(schema: str, table: str, column: str) -> str | None:
    if schema == "meta":
        return COLUMNS.get(f"meta.{table}", {}).get(column)
    return (_QUARANTINE if schema == "quarantine" else LINEAGE).get(column)


def _whole(schema: str, table: str, kind: str) -> str | None:
    if schema == "meta":
        return TABLES.get(f"meta.{table}")
    if kind == "MACRO TABLE":
        return MACRO.format(stream=table.removesuffix("_as_of"))
    stream, _, array = table.partition("__")
    if array:
        return CHILD.format(array=array, schema=schema, stream=stream)
    return SCHEMAS[schema].format(stream=stream)


def lacking(database: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Yield what has no COMMENT, by its whole name."""
    for schema, table, column, _kind in database.execute(BARE).fetchall():
        yield ".".join(filter(None, (schema, table, column)))
