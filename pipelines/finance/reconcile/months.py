"""Closed months: writes the copy of one, and reads copies beside the rows as they are now."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.core import stop
from pipelines.core.errors import ArchiveDamaged, NewerFormat, PartnerSyncError, StorageFailed
from pipelines.core.files import durable_rename, private_folder, remove, sync_file
from pipelines.core.text import printable
from pipelines.finance.currencies import code_of
from pipelines.finance.mapping import Mapping, read_mapping
from pipelines.finance.reconcile.normalize import Sides
from pipelines.finance.reconcile.statements import MEMORY
from pipelines.metadata.tables import Close
from pipelines.warehouse.memory_limit import is_memory_refused, readable_error

FORMAT: Final = 2  # of a manifest; one that does not say a number has format 1
SIGNED_FILE: Final = 0o400
MANIFEST, MAPPING = "manifest.json", "mapping.toml"
COPIED: Final = {  # table -> its month; corrections are those that the month takes
    **dict.fromkeys(("temp.used", "temp.billed"), "month"),
    **dict.fromkeys(
        (f"reconciliation.{name}" for name in ("summary", "breaks", "rollforward")), "month"
    ),
    "reconciliation.corrections": "posted_to",
}
STATED: Final = ("number", "preparer", "reviewer", "note", "version")
COPY: Final = """
COPY (SELECT rows.* FROM {} AS rows WHERE rows.{} = DATE '{}')
TO '{}' (FORMAT parquet, ROW_GROUP_SIZE_BYTES '16MB')
"""
AS_OF: Final = "SELECT basis.as_of::VARCHAR FROM reconciliation.basis AS basis"
SCANS: Final = """
SELECT concat(lists.connection, '/', lists.stream) AS list, lists.last_scan_id
FROM meta.freshness AS lists
WHERE lists.stream IN ('partners', 'usage', 'billing')
ORDER BY list
"""
CREATE_MONTHS: Final = """
CREATE OR REPLACE TEMP TABLE closed_months (
    month DATE, number INTEGER, preparer VARCHAR, reviewer VARCHAR, closed_at TIMESTAMPTZ,
    version INTEGER, is_reopened BOOLEAN, posted_to DATE
);
CREATE OR REPLACE TEMP TABLE closed_lists (month DATE, list VARCHAR, scan_id VARCHAR);
CREATE OR REPLACE TEMP MACRO hidden(value, whole) AS
    if(list_contains(getvariable('erased')::VARCHAR[], left(sha256(whole), 16)), '[erased]', value);
CREATE OR REPLACE TEMP MACRO hidden_id(side, id) AS
    hidden(id, if(side = 'billing', regexp_replace(id, '#[^#]*$', ''), id));
"""
INSERT_MONTH: Final = "INSERT INTO closed_months VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
INSERT_LIST: Final = "INSERT INTO closed_lists VALUES ($1, $2, $3)"
# Rows of a copy have sign -1, those of today 1.
ROWS: Final = """
SELECT
    {sign} AS sign, rows.side, rows.month, rows.connection, rows.id, rows.partner,
    {currency} AS currency, rows._key, rows._valid_from, rows.quantity, rows.amount
FROM (
    SELECT 'usage' AS side, used.* FROM {used} AS used
    UNION ALL BY NAME
    SELECT 'billing' AS side, billed.* FROM {billed} AS billed
) AS rows
WHERE rows.month IN ({months}) AND (rows.apart IS NULL OR rows.apart = 'credit note')
"""
# What a month took is in its copy, also where a version was rolled back or is lost.
SIGNED: Final = """
SELECT posted.* REPLACE (
    hidden_id(posted.side, posted.id) AS id, hidden(posted.partner, posted.partner) AS partner,
    posted.amount_before::{amount} AS amount_before, posted.amount_now::{amount} AS amount_now,
    posted.difference::{amount} AS difference
)
FROM {table} AS posted
"""
# Of amounts of earlier versions: only their type counts.
MEMORY_ROWS: Final = """
SELECT 0::DECIMAL(38, 0) AS quantity, rows.difference AS amount
FROM {} AS rows
WHERE false
"""
TYPED: Final = """
SELECT rows.* REPLACE (
    rows.quantity::DECIMAL(38, {quantity}) AS quantity, rows.amount::DECIMAL(38, {amount}) AS amount
)
FROM ({query}) AS rows
"""
VIEWS: Final = ("used", "billed")
NEEDS: Final = [
    f"{side}.{role}" for side in ("usage", "billing") for role in ("partner", "period", "amount")
]


def month_after(month: date) -> date:
    """Return the first day of the next month."""
    return (month.replace(day=1) + timedelta(days=31)).replace(day=1)


def write_copy(db: duckdb.DuckDBPyConnection, close: Close, folder: Path, mapping: bytes) -> str:
    """Copy a month of a published version into a new folder; return the manifest's SHA-256.

    The folder is whole or not there. Raises StorageFailed.
    """
    part = folder.with_name(f".{folder.name}.part")
    try:
        remove(part)
        private_folder(part)
        db.execute("SET preserve_insertion_order = false")  # needs less memory
        for name, month in COPIED.items():
            stop.raise_if_requested()
            file = part / f"{name.partition('.')[2]}.parquet"
            db.execute(COPY.format(name, month, close.month, _quoted(file)))
        (part / MAPPING).write_bytes(mapping)
        manifest = {
            "format": FORMAT,
            **{name: getattr(close, name) for name in STATED},
            "month": f"{close.month:%Y-%m}",
            "closed_at": close.closed_at.isoformat(),
            "as_of": db.execute(AS_OF).fetchall()[0][0],
            "scans": dict(db.execute(SCANS).fetchall()),
            "sha256": {file.name: _sha256(file) for file in sorted(part.iterdir())},
        }
        (part / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
        digest = _sha256(part / MANIFEST)
        for file in part.iterdir():
            file.chmod(SIGNED_FILE)
            sync_file(file)
        sync_file(part)
        durable_rename(part, folder)
        for parent in folder.parents[1:3]:  # in which folders may be new
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


def adopt_copy(folder: Path, close: Close) -> bool:
    """Give a close the copy in a folder if it was written for this close; return whether it was.

    Raises ArchiveDamaged for one that is not whole, NewerFormat.
    """
    digest = _sha256(folder / MANIFEST)
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):  # of another close, which nobody knows
        return False
    _require_known_format(folder, manifest)
    wanted = {name: getattr(close, name) for name in STATED} | {"month": f"{close.month:%Y-%m}"}
    if any(manifest.get(name) != value for name, value in wanted.items()):
        return False
    close.closed_at = datetime.fromisoformat(manifest["closed_at"])
    close.manifest_sha256 = digest
    require_intact(folder, close)
    return True


def create_month_rows(db: duckdb.DuckDBPyConnection, closes: dict[Path, Close]) -> str:
    """Create view `month_rows`: rows of the copies of closed months, and those of today.

    View `signed_corrections` has what the closed months took.

    `closes` are all of them by folder; table `closed_months` shows them. Returns why the rows
    cannot be compared, empty if they can; the view is empty then. Its quantities and amounts have
    types that hold those of today and of earlier versions too: where two types meet, DuckDB rounds.
    """
    standing = {folder: close for folder, close in closes.items() if close.reopened_at is None}
    closed = {close.month for close in standing.values()}
    db.execute(CREATE_MONTHS)
    for close in closes.values():
        posted_to = month_after(close.month)
        while posted_to in closed:
            posted_to = month_after(posted_to)
        about = (close.month, close.number, close.preparer, close.reviewer, close.closed_at)
        state = (close.version, close.reopened_at is not None, posted_to)
        db.execute(INSERT_MONTH, (*about, *state))
    of_today = _rows(1, {view: f"(FROM temp.{view} LIMIT 0)" for view in VIEWS}, [])
    no_rows = [of_today, *(MEMORY_ROWS.format(f"temp.memory_{each}") for each in MEMORY)]
    files = [f"'{_quoted(folder / 'corrections.parquet')}'" for folder in standing]
    signed = ["(FROM temp.memory_corrections LIMIT 0)", *files]
    try:
        rows = [*_month_rows(db, standing), *map(MEMORY_ROWS.format, files)]
        _create_view(db, [*no_rows, *rows])
        amount = db.table("month_rows").types[-1]
        queries = (SIGNED.format(table=each, amount=amount) for each in signed)
        union = " UNION ALL BY NAME ".join(queries)
        db.execute(f"CREATE OR REPLACE TEMP VIEW signed_corrections AS {union}")
    except (PartnerSyncError, OSError, duckdb.Error) as error:
        _create_view(db, no_rows)
        return readable_error(error)
    return ""


def _create_view(db: duckdb.DuckDBPyConnection, queries: list[str]) -> None:
    """Create view `month_rows` of statements, with the digits behind the point of all of them."""
    columns: list[dict[str, Any]] = [
        dict(zip(each.columns, each.types, strict=True)) for each in map(db.sql, queries)
    ]
    digits = {
        name: max(dict(each[name].children)["scale"] for each in columns)
        for name in ("quantity", "amount")
    }
    union = " UNION ALL BY NAME ".join(TYPED.format(query=each, **digits) for each in queries)
    db.execute(f"CREATE OR REPLACE TEMP VIEW month_rows AS {union}")


def _month_rows(db: duckdb.DuckDBPyConnection, closes: dict[Path, Close]) -> Iterator[str]:
    """Yield statements for the rows of copies, and for those of today by each one's mapping.

    Raises ArchiveDamaged for a copy that is not what was signed off.
    """
    months = defaultdict[bytes, dict[Path, date]](dict)  # of copies with the same mapping
    for folder, close in closes.items():
        require_intact(folder, close)
        months[(folder / MAPPING).read_bytes()][folder] = close.month
        files = {view: _quoted(folder / f"{view}.parquet") for view in VIEWS}
        copy = {view: f"read_parquet('{file}')" for view, file in files.items()}
        yield _rows(-1, copy, [close.month])
        for name, scan in json.loads((folder / MANIFEST).read_bytes())["scans"].items():
            db.execute(INSERT_LIST, (close.month, name, scan))
    for folders in months.values():
        file = next(iter(folders)) / MAPPING
        sides = Sides(db, read_mapping(file) or Mapping())
        sides.create_bill_months()
        if reason := sides.missing(NEEDS):
            raise ArchiveDamaged(f"{reason}, but {file} names it.")
        today = {view: f"({sides.query(view)})" for view in VIEWS}
        yield _rows(1, today, folders.values())


def _rows(sign: int, sources: dict[str, str], months: Iterable[date]) -> str:
    dates = ", ".join(["NULL", *(f"DATE '{month}'" for month in months)])
    return ROWS.format(sign=sign, months=dates, currency=code_of("rows.currency"), **sources)


def require_intact(folder: Path, close: Close) -> None:
    """Raise ArchiveDamaged if the copy of a month is not what was signed off, or NewerFormat."""
    digests = {MANIFEST: close.manifest_sha256}
    if _sha256(folder / MANIFEST) == close.manifest_sha256:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        _require_known_format(folder, manifest)
        digests = manifest["sha256"]
    for name, digest in digests.items():
        if _sha256(folder / name) != digest:
            raise ArchiveDamaged(
                f"The copy of {close.month:%Y-%m} is damaged: {folder / name} is missing, was "
                "changed after the month was closed, or cannot be read.",
                "Restore it from a backup, then run `partner-sync reconcile`.",
            )


def _require_known_format(folder: Path, manifest: dict[str, Any]) -> None:
    number = manifest.get("format", 1)
    if number > FORMAT:
        raise NewerFormat(
            f"The copy {folder} has format {number}, and this partner-sync reads formats up to "
            f"{FORMAT}: a newer one wrote it. The month is not compared with it; the copy was not "
            "changed.",
            "Install the newer partner-sync.",
        )


def _sha256(file: Path) -> str:
    """Return the digest of a file; empty where it is missing or cannot be read."""
    try:
        with file.open("rb") as source:
            return hashlib.file_digest(source, "sha256").hexdigest()
    except OSError:
        return ""


def _quoted(file: Path) -> str:
    return str(file).replace("'", "''")
