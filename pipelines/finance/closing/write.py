"""Writes the copy of a closed month: rows, figures, balances, `verify.py` and the manifest.

The copy holds identifiers of partners and records, no names: it is never changed, so `erase` could
not take a name out of it.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.core import stop
from pipelines.core.errors import StorageFailed
from pipelines.core.files import private_folder, remove, share, sync_file
from pipelines.core.text import is_one_of, printable, quote_text
from pipelines.files.store import FileStore
from pipelines.finance.closing.journal import JournalBasis, write_journal
from pipelines.finance.closing.ledger import ledger_lines
from pipelines.finance.closing.open_items import find_open_items
from pipelines.finance.closing.verify import PREPARE, ROLLFORWARD, read_sums
from pipelines.finance.closing.working_paper import MOST_ROWS, write_working_paper
from pipelines.finance.mapping import parse_mapping
from pipelines.finance.reconcile.close_copy import (
    FORMAT,
    MANIFEST,
    MAPPING,
    OPEN_ITEMS,
    PAGE,
    PREVIOUS,
    digest_of,
    stated,
)
from pipelines.finance.reconcile.views import create_row_views, hide_names
from pipelines.metadata.tables import Close
from pipelines.warehouse.duckdb_file import SETTINGS, Row
from pipelines.warehouse.memory_limit import is_memory_refused

SIGNED_FILE: Final = 0o400
# The first copy of a home has no previous one: nothing was signed before.
NO_PREVIOUS: Final[dict[str, Any]] = {"sums": {"rollforward": []}}
OF_MONTH: Final = "SELECT rows.* FROM {table} AS rows WHERE rows.month = $month"
OF_BREAKS: Final = """
SELECT rows.*{more}
FROM {table} AS rows
JOIN (
    SELECT breaks.break_id, breaks.currency, breaks.own_source
    FROM reconciliation.breaks AS breaks
    WHERE breaks.month = $month
) AS breaks USING (break_id)
"""
# Of a row of another month, of which the copy has nothing else, also whose it is and what it says.
BREAK_ROWS: Final = (
    OF_BREAKS.format(
        table="reconciliation.break_rows",
        more=", breaks.own_source, others.owner, others.key, others.record, others.date, "
        "others.price",
    )
    + """
LEFT JOIN (
    SELECT
        'usage' AS side, used.connection, used.id, used._scan_id, used._page, used._row,
        used.partner AS owner, used.key, used.id AS record, used.day AS date, used.price
    FROM temp.used AS used
    WHERE used.month IS DISTINCT FROM $month
    UNION ALL BY NAME
    SELECT
        'billing' AS side, billed.connection, billed.id, billed._scan_id, billed._page, billed._row,
        billed.partner AS owner, billed.key, coalesce(billed.number, billed.bill) AS record,
        billed.issued_at::DATE AS date, billed.price
    FROM temp.billed AS billed
    WHERE billed.month IS DISTINCT FROM $month
) AS others
    ON others.side = rows.side AND others.connection = rows.connection AND others.id = rows.id
    AND others._scan_id = rows._scan_id AND others._page = rows._page AND others._row = rows._row
"""
)
# Texts that cannot be read are not identifiers: any text may be in them.
OF_ROWS: Final = OF_MONTH.replace("rows.*", "rows.* EXCLUDE (unread_text)")
TABLES: Final = {
    "used": OF_ROWS.format(table="temp.used"),
    "billed": OF_ROWS.format(table="temp.billed"),
    "summary": OF_MONTH.format(table="reconciliation.summary"),
    # By kind; charges that are in a break are not among them.
    "fees": OF_MONTH.format(table="reconciliation.without_usage"),
    # What is open and certain counts in the totals; what own books say is not billed minus used.
    "breaks": """
SELECT
    breaks.*,
    if(breaks.state <> 'resolved' AND breaks.uncertain IS NULL
        AND breaks.own_source IS NULL, breaks.difference, NULL) AS open_difference
FROM reconciliation.breaks AS breaks
WHERE breaks.month = $month""",
    "break_rows": BREAK_ROWS,
    "decisions": OF_BREAKS.format(table="reconciliation.decisions", more=", breaks.currency"),
    "corrections": """
SELECT posted.* FROM reconciliation.corrections AS posted WHERE posted.posted_to = $month""",
}
# What is unbilled of all earlier months today, less what is posted to this month or a later one, is
# what was signed before, and what changed since without a correction. Amounts of two types are
# added, never in one column: DuckDB would round them.
OPENING: Final = """
WITH moves AS (
    SELECT
        signed.connection, signed.currency, signed.closing AS signed,
        if(list_contains($erased::VARCHAR[], left(sha256(signed.partner), 16)), '[erased]',
            signed.partner) AS partner
    FROM {previous} AS signed
    UNION ALL BY NAME
    SELECT used.connection, used.partner, used.currency, used.amount AS used
    FROM temp.used AS used
    WHERE used.month < $month
    UNION ALL BY NAME
    SELECT billed.connection, billed.partner, billed.currency, billed.amount AS billed
    FROM temp.billed AS billed
    WHERE billed.month < $month AND (billed.apart IS NULL OR billed.apart = 'credit note')
    UNION ALL BY NAME
    SELECT
        posted.connection, posted.partner, posted.currency,
        if(posted.side = 'usage', posted.difference, -posted.difference) AS posted
    FROM reconciliation.corrections AS posted
    WHERE posted.month < $month AND posted.posted_to >= $month
)
SELECT
    moves.connection, moves.partner, moves.currency, coalesce(sum(moves.signed), 0) AS opening,
    coalesce(sum(moves.used), 0) - coalesce(sum(moves.billed), 0)
        - coalesce(sum(moves.posted), 0) - coalesce(sum(moves.signed), 0) AS unposted
FROM moves
GROUP BY moves.connection, moves.partner, moves.currency
HAVING opening <> 0 OR unposted <> 0
"""
# What is no exception is balanced to the last digit: its bill has the amount of the usage.
BALANCED: Final = """
UNION ALL BY NAME
SELECT
    used.connection, used.key, min(used.partner) AS partner, used.currency,
    count(*) AS used_rows, sum(used.quantity) AS used_quantity, sum(used.amount) AS used_amount,
    sum(used.amount) AS billed_amount, sum(used.amount) - sum(used.amount) AS difference,
    'balanced' AS status
FROM temp.used AS used
ANTI JOIN reconciliation.exceptions AS pairs
    ON pairs.connection = used.connection AND pairs.key = used.key
WHERE used.month = $month AND used.unread IS NULL
GROUP BY used.connection, used.key, used.currency
"""
USED_ROWS: Final = "SELECT count(*) FROM temp.used AS used WHERE used.month = $month"
NO_BALANCES: Final = """(
    SELECT
        NULL::VARCHAR AS connection, NULL::VARCHAR AS partner, NULL::VARCHAR AS currency,
        NULL::DECIMAL(38, 0) AS closing
    WHERE false
)"""
# In groups of 16 MB: with larger ones, DuckDB exceeds memory_limit.
COPY: Final = "COPY ({query}) TO {file} (FORMAT parquet, ROW_GROUP_SIZE_BYTES '16MB')"
AS_OF: Final = "SELECT basis.as_of::VARCHAR FROM reconciliation.basis AS basis"
SCANS: Final = """
SELECT concat(lists.connection, '/', lists.stream) AS list, lists.last_scan_id
FROM meta.freshness AS lists
WHERE lists.stream IN ('partners', 'usage', 'billing') AND {is_chosen}
ORDER BY list
"""
CONNECTIONS: Final = """
SELECT DISTINCT lists.connection
FROM reconciliation.lists AS lists
WHERE lists.is_compared
ORDER BY lists.connection
"""


@dataclass(frozen=True)
class OwnRows:
    """Own books of a copy: what the books say of each source, and queries of rows of a month."""

    sources: list[Row]
    queries: list[str]

    def stated(self) -> dict[str, Any]:
        """Return what the manifest says of sources: `ledger sha256`, `ledger rows`, and so on."""
        said = {}
        for row in self.sources:
            for name, value in row.items():
                if name != "source":
                    said[f"{row['source']} {name}"] = value
        return said


@dataclass(frozen=True)
class Basis:
    """What a copy rests on besides the open books.

    `mapping` is the content of its file. `previous` is the copy of the last month before that is
    closed; None without one that has balances. `erased` are digests of identifiers. `page` is the
    report as it is now, without names. `journal` is None without accounts. `readers` is the group
    that may read the copy, `preparers` the user who runs the command, and who logged in as another.
    `preparer_role` is the home's user of the server that has the metadata database, if there is one
    and another user of it approves. `own` is None without own books.
    """

    mapping: bytes
    previous: Path | None
    erased: Sequence[str]
    page: str
    journal: JournalBasis | None
    readers: str | None
    preparers: tuple[int, int | None]
    preparer_role: str | None = None
    own: OwnRows | None = None


def write_copy(
    db: duckdb.DuckDBPyConnection, close: Close, folder: Path, basis: Basis, store: FileStore
) -> str:
    """Copy a month of open books into a new folder; return the manifest's SHA-256.

    It is whole or not there. The books have no names of partners afterwards. Raises StorageFailed.
    """
    part = folder.with_name(f".{folder.name}.part")
    try:
        remove(part)
        private_folder(part)
        hide_names(db, close.connections)
        if close.connections is not None:  # also in the rows of both sides
            create_row_views(db, parse_mapping(basis.mapping.decode()), close.connections)
        _write_files(db, close, part, basis)
        digest = digest_of(part / MANIFEST)
        for file in part.iterdir():
            file.chmod(SIGNED_FILE)
            share(file, basis.readers)
            sync_file(file)
        for shared in (part, *folder.parents[:2]):
            share(shared, basis.readers)
        sync_file(part)
        store.put_folder(part, folder, MANIFEST)
        # The folders of the month and of all closes may be new, so their own entries are synced.
        for parent in folder.parents[1:3]:
            sync_file(parent)
    except (duckdb.Error, OSError) as error:
        if is_memory_refused(error):
            raise  # which `open_session` explains
        raise StorageFailed(
            f"The copy {folder} cannot be written: {printable(error)}. {close.month:%Y-%m} is not "
            "closed. Analysts still see the published version.",
            "Make room or correct the permissions, then close the month again.",
        ) from error
    finally:
        with suppress(StorageFailed):
            remove(part)
    return digest


def _write_files(db: duckdb.DuckDBPyConnection, close: Close, folder: Path, basis: Basis) -> None:
    """Write every file of a copy; the manifest, which names the others, last."""
    # Rows keep no order in a copy: to keep one, DuckDB needs more memory.
    db.execute("SET preserve_insertion_order = false")
    bound: dict[str, Any] = {"month": close.month}
    for table, query in TABLES.items():
        _write_table(db, query, folder / f"{table}.parquet", bound)
    if basis.own is not None and basis.own.queries:
        rows = " UNION ALL BY NAME ".join(basis.own.queries)
        _write_table(db, rows, folder / "own.parquet", bound)
        totals = OF_MONTH.format(table="reconciliation.own_totals")
        _write_table(db, totals, folder / "own_totals.parquet", bound)
    _write_matches(db, folder, bound)
    previous = _write_previous(db, folder, basis, bound)
    if basis.journal is not None:
        write_journal(db, folder, (close.month, close.number), basis.journal)
    _write_table(db, find_open_items(db, close.month), folder / OPEN_ITEMS, bound)
    sums = _write_balances(db, folder)
    ((as_of,),) = db.execute(AS_OF).fetchall()
    scans = SCANS.format(is_chosen=is_one_of("lists.connection", close.connections))
    signed = {
        **stated(close),
        "month": f"{close.month:%Y-%m}",
        "closed_at": close.closed_at.isoformat(),
        "preparer_uid": basis.preparers[0],
        "preparer_login": basis.preparers[1],
        "preparer_role": basis.preparer_role,
        "as_of": as_of,
        "connections": [name for (name,) in db.execute(CONNECTIONS).fetchall()],
        "scans": dict(db.execute(scans).fetchall()),
        "previous": previous,
    }
    if basis.own is not None:
        signed["own_books"] = basis.own.stated()
    write_working_paper(
        db, folder / f"{signed['month']}.xlsx", {**signed, "sha256": _digests(folder)}
    )
    (folder / PAGE).write_text(basis.page, encoding="utf-8")
    (folder / MAPPING).write_bytes(basis.mapping)
    verify = files("pipelines.finance.closing").joinpath("verify.py")
    (folder / "verify.py").write_bytes(verify.read_bytes())
    signed["ledger"] = ledger_lines(close, basis.journal)
    manifest = {"format": FORMAT, **signed, "sums": sums, "sha256": _digests(folder)}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")


def _digests(folder: Path) -> dict[str, str]:
    return {file.name: digest_of(file) for file in sorted(folder.iterdir())}


def _write_table(
    db: duckdb.DuckDBPyConnection, query: str, file: Path, bound: dict[str, Any]
) -> None:
    stop.raise_if_requested()
    db.execute(COPY.format(query=query, file=quote_text(str(file))), bound)


def _write_matches(db: duckdb.DuckDBPyConnection, folder: Path, bound: dict[str, Any]) -> None:
    """Write the pairs of usage and bills; of too many rows, those that differ."""
    query = OF_MONTH.format(table="reconciliation.exceptions")
    ((rows,),) = db.execute(USED_ROWS, bound).fetchall()
    if rows <= MOST_ROWS:
        query += BALANCED
    _write_table(db, query, folder / "matches.parquet", bound)


def _write_previous(
    db: duckdb.DuckDBPyConnection, folder: Path, basis: Basis, bound: dict[str, Any]
) -> dict[str, Any] | None:
    """Write the manifest of the previous copy, and opening balances; return which copy it is."""
    content = json.dumps(NO_PREVIOUS).encode()
    balances = NO_BALANCES
    stated_of = None
    if basis.previous is not None:
        content = (basis.previous / MANIFEST).read_bytes()
        manifest = json.loads(content)
        balances = f"read_parquet({quote_text(str(basis.previous / 'rollforward.parquet'))})"
        stated_of = {
            "month": manifest["month"],
            "number": manifest["number"],
            "manifest_sha256": digest_of(basis.previous / MANIFEST),
        }
    (folder / PREVIOUS).write_bytes(content)
    query = OPENING.format(previous=balances)
    opening = {**bound, "erased": list(basis.erased)}
    _write_table(db, query, folder / "opening.parquet", opening)
    return stated_of


def _write_balances(db: duckdb.DuckDBPyConnection, folder: Path) -> dict[str, Any]:
    """Write the roll-forward of the written rows; return the sums of all tables.

    Both are computed by the statements of `verify.py`, from the files alone. Schema `copied` has a
    view of each table afterwards.
    """
    db.execute(PREPARE)
    for file in folder.glob("*.parquet"):
        _create_view(db, file)
    balances = folder / "rollforward.parquet"
    _write_table(db, ROLLFORWARD, balances, {})
    _create_view(db, balances)
    ((memory_limit,),) = db.execute("SELECT current_setting('memory_limit')").fetchall()
    with duckdb.connect(config={**SETTINGS, "memory_limit": memory_limit}) as copy:
        return read_sums(copy, folder)


def _create_view(db: duckdb.DuckDBPyConnection, file: Path) -> None:
    db.execute(f"CREATE VIEW copied.{file.stem} AS FROM read_parquet({quote_text(str(file))})")
