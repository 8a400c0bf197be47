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
        with open_books(session) as (version, _db):
            require_unchanged(session.metadata, version)
        closes = read_closes(session).values()
        number = max((each.number for each in closes if each.month == month), default=0) + 1
        about: Row = {"month": month, "number": number, "version": version.number, "note": note}
        about |= {"preparer": preparer.strip(), "reviewer": reviewer.strip()}
        close = Close(**about, closed_at=session.clock.utc_now(), manifest_sha256="")
        with open_books(session) as (_version, db):
            if sentence := _closed_before(session, close, db):
                return sentence
            for why, remedy in chain(_one_person(close), _refusals(session, month, version, db)):
                text = f"{month:%Y-%m} cannot be closed: {why.rstrip('.')}."
                raise ConfigurationError(f"{text} Nothing was written.", remedy)
            folder = _copy(session, close, db, mapping)
            open_breaks = [
                f"{counted(each['breaks'], 'break')} of {each['currency'] or 'no currency'} "
                f"{format_amount(each['difference'], each['currency'], signed=True)}"
                for each in fetch_rows(db, OPEN_BREAKS, {"month": month})
            ]
            ((aside,),) = db.execute(IN_QUARANTINE).fetchall()
        with session.metadata.transaction() as rows:
            rows.add(close)
    still = f"Still open: {', '.join(open_breaks)}." if open_breaks else "No break of it is open."
    return (
        f"{month:%Y-%m} is closed as published in version {version.number}. Its copy is {folder}. "
        f"The SHA-256 of its manifest is {close.manifest_sha256}. {still}"
        + (f" Records in quarantine, which amounts may lack: {aside:,}." if aside else "")
    )


def _closed_before(session: Stores, close: Close, db: duckdb.DuckDBPyConnection) -> str:
    """Return a sentence about the same close, if there is one that still holds; else nothing.

    The command that made it may have been killed in the build behind it. Where records of the month
    changed since, the month has to be reopened first.
    """
    with suppress(duckdb.CatalogException):  # nothing is reconciled
        for month, _number, state, *_ in db.execute(STATES).fetchall():
            if (month, state) == (close.month, "outdated"):
                return ""
    for folder, each in read_closes(session).items():
        is_same = all(getattr(each, name) == getattr(close, name) for name in SIGNED_BY)
        if is_same and each.month == close.month and each.reopened_at is None:
            require_intact(folder, each)
            return (
                f"{each.month:%Y-%m} is closed already: {each.preparer} and {each.reviewer} closed "
                f"it at {each.closed_at:{TIME}}, as published in version {each.version}. Its copy "
                f"is {folder}. The SHA-256 of its manifest is {each.manifest_sha256}."
            )
    return ""


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
        lists = [
            {
                **{name: proof[name] for name in ("connection", "stream", "began_at")},
                "complete": proof["is_complete"],
                "one_reading": rests_on_one_reading(proof["method"], proof["chains"]),
            }
            for proof in fetch_rows(db, PROOFS, {"month": month})
            if proof["has_month"] and proof["stream"] in SIDES
        ]
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
    if reason := _not_evaluated(db):
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
    standing = {f: each for f, each in read_closes(session).items() if each.reopened_at is None}
    for folder, each in standing.items():
        if each.month == month:
            why = f"{each.preparer} and {each.reviewer} closed it at {each.closed_at:{TIME}}"
            yield why, "Run `partner-sync close reopen` with --reason first."
        require_intact(folder, each)
        if mapping_digest(folder / MAPPING) == present:
            continue
        sides = Sides(db, read_mapping(folder / MAPPING) or Mapping())
        sides.create_bill_months()
        months = {"this": month, "other": each.month}
        for view in ("used", "bills"):
            query = MOVED.format(then=sides.query(view), view=view)
            ((moved,),) = db.execute(query, months).fetchall()
            if moved:
                why = (
                    f"{each.month:%Y-%m} was closed with another mapping, and "
                    f"{counted(moved, 'record')} would be in both months or in none"
                )
                remedy = f"Reopen {each.month:%Y-%m}, and close it again with the current mapping."
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
    proofs = {
        (each["connection"], each["stream"]): each
        for each in fetch_rows(db, PROOFS, {"month": month})
    }
    with_month = {each for each, proof in proofs.items() if proof["has_month"]}
    lists = {(name, each.name) for name, streams in session.lists().items() for each in streams}
    for connection, stream in sorted(each for each in lists | with_month if each[1] in SIDES):
        proof = proofs.get((connection, stream))
        if proof is None or not proof["is_complete"]:
            why = "proven complete" if proof else "loaded"
            yield f"{stream} of {connection} is not {why}", SYNC
        elif proof["began_at"] < ends:
            began = f"{proof['began_at']:{TIME}}"
            yield f"{stream} of {connection} was read at {began}, before {ends:{TIME}}", SYNC
    if not with_month:
        yield "the published version has no record of it", "Check the month and the mapping."


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
        close.reopened_by, close.reopened_reason = person, reason
    return f"{month:%Y-%m} is open again. Copy {close.number:03} stays as it was signed off."


def list_closes(session: Stores) -> list[Row]:
    """Return every close with what the published version says of it.

    `problem` says why a month is not compared with its copy, or that the copy is damaged.
    """
    states = dict[tuple[date, int], Row]()
    problem = "The published books do not show it yet. Run `partner-sync reconcile`."
    try:
        with open_reconciled(session, "closes") as (_version, db):
            for each in fetch_rows(db, STATES):
                states[each.pop("month"), each.pop("number")] = each
    except PartnerSyncError as error:
        problem = f"{error} {error.remedy}".strip()
    rows = []
    for folder, close in read_closes(session).items():
        state = states.get((close.month, close.number))
        row = asdict(close) | {"month": f"{close.month:%Y-%m}"} | (state or UNKNOWN)
        row["state"] = "reopened" if close.reopened_at else row["state"]
        rows.append(row | {"problem": _damage(folder, close) or (None if state else problem)})
    return rows


def _damage(folder: Path, close: Close) -> str | None:
    """Return why a copy is not what was signed off; None if it is. Reads it whole."""
    try:
        require_intact(folder, close)
    except PartnerSyncError as error:
        return f"{error} {error.remedy}"
    return None
