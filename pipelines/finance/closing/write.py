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
from pipelines.core.text import decode_text, is_one_of, printable, quote_text
from pipelines.files.store import FileStore
from pipelines.finance.closing.entries import JournalBasis
from pipelines.finance.closing.journal import write_journal
from pipelines.finance.closing.ledger import ledger_lines
from pipelines.finance.closing.open_items import find_open_items
from pipelines.finance.closing.paper_rows import MOST_ROWS
from pipelines.finance.closing.rows import (
    BALANCED,
    NO_BALANCES,
    OF_MONTH,
    OPENING,
    TABLES,
    USED_ROWS,
)
from pipelines.finance.closing.verify import PREPARE, ROLLFORWARD, read_sums
from pipelines.finance.closing.working_paper import write_working_paper
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
# In groups of 16 MB: with larger ones, DuckDB exceeds memory_limit.
COPY: Final = "COPY ({query}) TO {file} (FORMAT parquet, ROW_GROUP_SIZE_BYTES '16MB')"
# As the report has it: each list was read until then, or later.
AS_OF: Final = """
SELECT coalesce(min(lists.ended_at), min(basis.as_of))::VARCHAR
FROM reconciliation.basis AS basis
LEFT JOIN reconciliation.lists AS lists ON lists.is_compared AND {is_chosen}
"""
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
            create_row_views(db, parse_mapping(decode_text(basis.mapping)), close.connections)
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
    _write_rows(db, folder, basis.own, bound)
    previous = _write_previous(db, folder, basis, bound)
    if basis.journal is not None:
        write_journal(db, folder, (close.month, close.number), basis.journal)
    _write_table(db, find_open_items(db, close.month), folder / OPEN_ITEMS, bound)
    # Balances and sums are those of the tables that are in the folder by now.
    sums = _write_balances(db, folder)
    signed = _signed(db, close, basis, previous)
    # The paper names the digests of all files before it, the manifest those of all others.
    fees = parse_mapping(decode_text(basis.mapping)).fee_reasons()
    with_digests = {**signed, "accepted_fees": fees, "sha256": _digests(folder)}
    side = basis.journal.accounts.side if basis.journal else None
    write_working_paper(db, folder / f"{signed['month']}.xlsx", with_digests, side)
    (folder / PAGE).write_text(basis.page, encoding="utf-8")
    (folder / MAPPING).write_bytes(basis.mapping)
    verify = files("pipelines.finance.closing").joinpath("verify.py")
    (folder / "verify.py").write_bytes(verify.read_bytes())
    signed["ledger"] = ledger_lines(close, basis.journal)
    manifest = {"format": FORMAT, **signed, "sums": sums, "sha256": _digests(folder)}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")


def _write_rows(
    db: duckdb.DuckDBPyConnection, folder: Path, own: OwnRows | None, bound: dict[str, Any]
) -> None:
    """Write the rows of the month of both sides, of breaks, and of own books."""
    for table, query in TABLES.items():
        _write_table(db, query, folder / f"{table}.parquet", bound)
    if own is not None and own.queries:
        rows = " UNION ALL BY NAME ".join(own.queries)
        _write_table(db, rows, folder / "own.parquet", bound)
        totals = OF_MONTH.format(table="reconciliation.own_totals")
        _write_table(db, totals, folder / "own_totals.parquet", bound)
    _write_matches(db, folder, bound)


def _signed(
    db: duckdb.DuckDBPyConnection, close: Close, basis: Basis, previous: dict[str, Any] | None
) -> dict[str, Any]:
    """Return what manifest and working paper say of a close and of what it rests on."""
    is_chosen = is_one_of("lists.connection", close.connections)
    ((as_of,),) = db.execute(AS_OF.format(is_chosen=is_chosen)).fetchall()
    connections = [name for (name,) in db.execute(CONNECTIONS).fetchall()]
    scans = db.execute(SCANS.format(is_chosen=is_chosen)).fetchall()
    uid, login = basis.preparers
    signed = {
        **stated(close),
        "month": f"{close.month:%Y-%m}",
        "closed_at": close.closed_at.isoformat(),
        "preparer_uid": uid,
        "preparer_login": login,
        "preparer_role": basis.preparer_role,
        "as_of": as_of,
        "connections": connections,
        "scans": dict(scans),
        "previous": previous,
    }
    if basis.own is not None:
        signed["own_books"] = basis.own.stated()
    return signed


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
