"""Months that are signed off: close one, open it again, list them.

A month is closed as it is published, so that its copy holds what analysts saw.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import date, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import duckdb
import sqlalchemy

from pipelines.core.completeness import rests_on_one_reading
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.core.text import counted
from pipelines.finance.books import why_outdated
from pipelines.finance.inputs import copy_folder, read_closes
from pipelines.finance.mapping import (
    REMEDY,
    Mapping,
    mapping_content,
    mapping_digest,
    read_mapping,
)
from pipelines.finance.reconcile.close_copy import (
    MAPPING,
    adopt_copy,
    require_intact,
    write_copy,
)
from pipelines.finance.reconcile.closed_rows import month_after
from pipelines.finance.reconcile.normalize import Sides
from pipelines.finance.reconcile.roles import SIDES
from pipelines.finance.reconciled import EVALUATED, create_rows, open_books, open_reconciled
from pipelines.finance.reports.text import format_amount
from pipelines.metadata.tables import Close
from pipelines.publish.stores import Stores
from pipelines.publish.versions import change_versions, require_unchanged
from pipelines.warehouse.duckdb_file import Row, fetch_rows
from pipelines.warehouse.version_files import Version

BUILD: Final = "Run `partner-sync reconcile`, review the month, then close it."
SYNC: Final = "Run `partner-sync sync`, review the month, then close it."
TIME: Final = "%Y-%m-%d %H:%M %Z"
TERMS: Final = """
SELECT basis.as_of, basis.time_zone, basis.grace_days FROM reconciliation.basis AS basis
"""
# Whether the newest scan is complete, and whether the connection has records of the month.
PROOFS: Final = """
SELECT
    loads.connection, loads.stream, max_by(loads.complete, loads.valid_time) AS is_complete,
    max_by(loads.started_at, loads.valid_time) FILTER (loads.complete) AS began_at,
    max_by(loads.method, loads.valid_time) AS method,
    max_by(loads.chains, loads.valid_time) AS chains,
    loads.connection IN (
        SELECT used.connection FROM temp.used AS used WHERE used.month = $month
        UNION ALL
        SELECT billed.connection FROM temp.billed AS billed WHERE billed.month = $month
    ) AS has_month
FROM meta.loads AS loads
GROUP BY loads.connection, loads.stream
ORDER BY ALL
"""
STATES: Final = """
SELECT closes.month, closes.number, closes.state, closes.changed_records, closes.net_difference
FROM reconciliation.closes AS closes
"""
# Records that are in one of two months by another mapping, and in the other one now.
MOVED: Final = """
SELECT count(*)
FROM ({then}) AS before
JOIN temp.{view} AS now
    ON now.connection = before.connection AND now._key = before._key
WHERE (before.month, now.month) IN (($this, $other), ($other, $this))
"""
OPEN_BREAKS: Final = """
SELECT breaks.currency, count(*) AS breaks, sum(breaks.difference) AS difference
FROM reconciliation.breaks AS breaks
WHERE breaks.month = $month AND breaks.state <> 'resolved'
GROUP BY breaks.currency
ORDER BY breaks.currency
"""
IN_QUARANTINE: Final = """
SELECT count(*) FROM quarantine.records AS records WHERE records.stream IN ('usage', 'billing')
"""
SIGNED_BY: Final = ("preparer", "reviewer", "note")
UNKNOWN: Final = {"state": None, "changed_records": None, "net_difference": None}
Refusals = Iterator[tuple[str, str]]
"""Why a month cannot be closed, and what to do; the first counts."""


def close_month(session: Stores, month: date, preparer: str, reviewer: str, note: str = "") -> str:
    """Copy a month of the published version and record who signed it off; return a sentence.

    `month` is its first day. The same command once more, as after a kill, finds its close and
    changes nothing. Raises ConfigurationError where that is not allowed, StorageFailed;
    nothing is written then.
    """
    with change_versions(session):
        mapping = mapping_content(session.home.mapping_file) or b""
        with open_books(session) as (version, db):
            require_unchanged(session.metadata, version)
            close = Close(
                month=month,
                number=_next_number(session, month),
                version=version.number,
                note=note,
                preparer=preparer.strip(),
                reviewer=reviewer.strip(),
                closed_at=session.clock.utc_now(),
                manifest_sha256="",
            )
            sentence = _closed_before(session, close, db)
            if sentence:
                return sentence
            for why, remedy in chain(_one_person(close), _refusals(session, month, version, db)):
                text = f"{month:%Y-%m} cannot be closed: {why.rstrip('.')}."
                raise ConfigurationError(f"{text} Nothing was written.", remedy)
            folder = _copy(session, close, db, mapping)
            still_open = _still_open(db, month)
        with session.metadata.transaction() as rows:
            rows.add(close)
    return (
        f"{month:%Y-%m} is closed as published in version {version.number}. Its copy is {folder}. "
        f"The SHA-256 of its manifest is {close.manifest_sha256}. {still_open}"
    )


def _next_number(session: Stores, month: date) -> int:
    """Return the number of the next close of a month, which counts from 1."""
    numbers = [close.number for close in read_closes(session).values() if close.month == month]
    return max(numbers, default=0) + 1


def _still_open(db: duckdb.DuckDBPyConnection, month: date) -> str:
    """Return which breaks of a month are open, and how many records are in quarantine."""
    breaks = []
    for row in fetch_rows(db, OPEN_BREAKS, {"month": month}):
        currency = row["currency"]
        amount = format_amount(row["difference"], currency, signed=True)
        breaks.append(f"{counted(row['breaks'], 'break')} of {currency or 'no currency'} {amount}")
    text = f"Still open: {', '.join(breaks)}." if breaks else "No break of it is open."
    ((in_quarantine,),) = db.execute(IN_QUARANTINE).fetchall()
    if in_quarantine:
        text += f" Records in quarantine, which amounts may lack: {in_quarantine:,}."
    return text


def _closed_before(session: Stores, close: Close, db: duckdb.DuckDBPyConnection) -> str:
    """Return a sentence about the same close, if there is one that still holds; else nothing.

    The command that made it may have been killed in the build behind it. Where records of the month
    changed since, the month has to be reopened first.
    """
    with suppress(duckdb.CatalogException):  # nothing is reconciled
        for month, _number, state, *_ in db.execute(STATES).fetchall():
            if (month, state) == (close.month, "outdated"):
                return ""
    for folder, before in _standing(session).items():
        is_signed_alike = all(getattr(before, name) == getattr(close, name) for name in SIGNED_BY)
        if is_signed_alike and before.month == close.month:
            require_intact(folder, before)
            return (
                f"{before.month:%Y-%m} is closed already: {before.preparer} and {before.reviewer} "
                f"closed it at {before.closed_at:{TIME}}, as published in version "
                f"{before.version}. Its copy is {folder}. The SHA-256 of its manifest is "
                f"{before.manifest_sha256}."
            )
    return ""


def _standing(session: Stores) -> dict[Path, Close]:
    """Return the closes that were not reopened, by the folder of their copy."""
    closes = read_closes(session)
    return {folder: close for folder, close in closes.items() if close.reopened_at is None}


def _copy(session: Stores, close: Close, db: duckdb.DuckDBPyConnection, mapping: bytes) -> Path:
    """Write the copy of a month, or take the one that a killed command wrote; return its folder.

    A folder of a close that is not known is kept: the metadata database may be older than it.
    """
    folder = copy_folder(session, close.month, close.number)
    while folder.exists():
        if _is_of(folder, mapping) and adopt_copy(folder, close):
            return folder
        close.number += 1
        folder = copy_folder(session, close.month, close.number)
    close.manifest_sha256 = write_copy(db, close, folder, mapping)
    return folder


def _is_of(folder: Path, mapping: bytes) -> bool:
    """Return whether a copy was written with this mapping; another one reads other figures."""
    try:
        return (folder / MAPPING).read_bytes() == mapping
    except OSError:
        return False


def prepare_month(session: Stores, month: date) -> Row:
    """Return what keeps a month from being closed (`refusals`), and what its proofs rest on.

    `lists` are those that are compared; `one_reading`: their proof holds if no row changed its
    place meanwhile. Raises PartnerSyncError.
    """
    with open_reconciled(session, "summary") as (version, db):
        require_unchanged(session.metadata, version)
        refusals = [
            {"message": f"{month:%Y-%m} cannot be closed: {why.rstrip('.')}.", "remedy": remedy}
            for why, remedy in _refusals(session, month, version, db)
        ]
        lists = []
        for proof in fetch_rows(db, PROOFS, {"month": month}):
            if proof["has_month"] and proof["stream"] in SIDES:
                one_reading = rests_on_one_reading(proof["method"], proof["chains"])
                lists.append(
                    {
                        "connection": proof["connection"],
                        "stream": proof["stream"],
                        "began_at": proof["began_at"],
                        "complete": proof["is_complete"],
                        "one_reading": one_reading,
                    }
                )
    return {"month": f"{month:%Y-%m}", "refusals": refusals, "lists": lists}


def basis_of(lists: Iterable[Row]) -> str:
    """Return which lists rest on one reading, as a sentence; empty if none does."""
    one = [f"{each['connection']}/{each['stream']}" for each in lists if each["one_reading"]]
    if not one:
        return ""
    return (
        f"The month rests on one chain of pages of {', '.join(one)}: it is proven complete if no "
        "row changed its place while the list was read."
    )


def _one_person(close: Close) -> Refusals:
    people = {close.preparer.casefold(), close.reviewer.casefold()}
    if len(people) == 1 or "" in people:
        yield "preparer and reviewer must be two people", "Name them: --preparer and --reviewer."


def _refusals(
    session: Stores, month: date, version: Version, db: duckdb.DuckDBPyConnection
) -> Refusals:
    reason = _not_evaluated(db)
    if reason:
        yield f"summary is not evaluated: {reason}", REMEDY
        return  # nothing else can be told
    create_rows(db)
    yield from _closed(session, month, db)
    if why_outdated(session):
        why = f"the books of version {version.number} lack newer data, decisions, closes or mapping"
        yield why, BUILD
    yield from _not_proven(session, month, db)


def _not_evaluated(db: duckdb.DuckDBPyConnection) -> str:
    """Return why there are no totals of months; empty if there are."""
    try:
        ((is_evaluated, reason),) = db.execute(EVALUATED, {"table": "summary"}).fetchall()
    except duckdb.CatalogException:
        return "no books were made. Run `partner-sync reconcile`"
    return "" if is_evaluated else str(reason)


def _closed(session: Stores, month: date, db: duckdb.DuckDBPyConnection) -> Refusals:
    """Yield that a month is closed, or that records moved between it and another closed one."""
    present = mapping_digest(session.home.mapping_file)
    for folder, close in _standing(session).items():
        if close.month == month:
            why = f"{close.preparer} and {close.reviewer} closed it at {close.closed_at:{TIME}}"
            yield why, "Run `partner-sync close reopen` with --reason first."
        require_intact(folder, close)
        if mapping_digest(folder / MAPPING) != present:
            yield from _moved(db, month, close, folder)


def _moved(db: duckdb.DuckDBPyConnection, month: date, close: Close, folder: Path) -> Refusals:
    """Yield that records moved between a month and one that was closed with another mapping."""
    sides = Sides(db, read_mapping(folder / MAPPING) or Mapping())
    sides.create_bill_months()
    months = {"this": month, "other": close.month}
    for view in ("used", "bills"):
        query = MOVED.format(then=sides.query(view), view=view)
        ((moved,),) = db.execute(query, months).fetchall()
        if moved:
            why = (
                f"{close.month:%Y-%m} was closed with another mapping, and "
                f"{counted(moved, 'record')} would be in both months or in none"
            )
            remedy = f"Reopen {close.month:%Y-%m}, and close it again with the current mapping."
            yield why, remedy


def _not_proven(session: Stores, month: date, db: duckdb.DuckDBPyConnection) -> Refusals:
    """Yield what is not proven complete after the month and its grace.

    Of connections that are not configured any more, those count that have records of the month.
    """
    ((as_of, time_zone, grace_days),) = db.execute(TERMS).fetchall()
    if month > as_of.date():
        yield f"it has not begun: the data ends at {as_of:{TIME}}", "Check the month."
    day = month_after(month) + timedelta(days=grace_days)
    ends = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(time_zone))
    if as_of < ends:
        why = f"it ends at {ends:{TIME}}, with grace_days, and the data ends at {as_of:{TIME}}"
        yield why, f"Wait until then. {SYNC}"
    yield from _not_complete(session, month, db, ends)


def _not_complete(
    session: Stores, month: date, db: duckdb.DuckDBPyConnection, ends: datetime
) -> Refusals:
    """Yield which lists are not proven complete by a reading that began after a moment."""
    proofs = {
        (proof["connection"], proof["stream"]): proof
        for proof in fetch_rows(db, PROOFS, {"month": month})
    }
    with_month = {name for name, proof in proofs.items() if proof["has_month"]}
    names = set(with_month)
    for connection, streams in session.lists().items():
        names.update((connection, stream.name) for stream in streams)
    for connection, stream in sorted(names):
        why = _why_not_complete(proofs.get((connection, stream)), ends)
        if why and stream in SIDES:
            yield f"{stream} of {connection} {why}", SYNC
    if not with_month:
        yield "the published version has no record of it", "Check the month and the mapping."


def _why_not_complete(proof: Row | None, ends: datetime) -> str:
    """Return why no complete reading of a list began after a moment; empty if one did."""
    if proof is None:
        return "is not loaded"
    if not proof["is_complete"]:
        return "is not proven complete"
    if proof["began_at"] < ends:
        return f"was read at {proof['began_at']:{TIME}}, before {ends:{TIME}}"
    return ""


def reopen_month(session: Stores, month: date, person: str, reason: str) -> str:
    """Record that a month is open again; its copy stays. Raises ConfigurationError."""
    with change_versions(session), session.metadata.transaction() as rows:
        query = sqlalchemy.select(Close).where(Close.month == month, Close.reopened_at.is_(None))
        close = rows.scalar(query)
        if close is None or not reason.strip():
            why = "it is not closed" if close is None else "a reason is needed"
            raise ConfigurationError(
                f"{month:%Y-%m} cannot be reopened: {why}. Nothing was changed.",
                "Run `partner-sync close list`, then `partner-sync close reopen` with --reason.",
            )
        close.reopened_at = session.clock.utc_now()
        close.reopened_by = person
        close.reopened_reason = reason
    return f"{month:%Y-%m} is open again. Copy {close.number:03} stays as it was signed off."


def list_closes(session: Stores) -> list[Row]:
    """Return every close with what the published version says of it.

    `problem` says why a month is not compared with its copy, or that the copy is damaged.
    """
    states: dict[tuple[date, int], Row] = {}
    problem = "The published books do not show it yet. Run `partner-sync reconcile`."
    try:
        with open_reconciled(session, "closes") as (_version, db):
            for row in fetch_rows(db, STATES):
                states[row.pop("month"), row.pop("number")] = row
    except PartnerSyncError as error:
        problem = f"{error} {error.remedy}".strip()
    rows = []
    for folder, close in read_closes(session).items():
        state = states.get((close.month, close.number))
        row = asdict(close)
        row["month"] = f"{close.month:%Y-%m}"
        row.update(state or UNKNOWN)
        if close.reopened_at:
            row["state"] = "reopened"
        row["problem"] = _damage(folder, close) or (None if state else problem)
        rows.append(row)
    return rows


def _damage(folder: Path, close: Close) -> str | None:
    """Return why a copy is not what was signed off; None if it is. Reads it whole."""
    try:
        require_intact(folder, close)
    except PartnerSyncError as error:
        return f"{error} {error.remedy}"
    return None
