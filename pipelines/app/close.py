"""Months that are signed off: close one, open it again, list them.

A month is closed as it is published, so that its copy holds what analysts saw.
"""

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import duckdb
import sqlalchemy

from pipelines.app.reconciled import Row, select
from pipelines.app.session import AppSession
from pipelines.config.mapping import REMEDY
from pipelines.core.clock import utc_now
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.metadata.tables import Close
from pipelines.publish.reconciliation import copy_folder, is_outdated, read_closes, read_inputs
from pipelines.publish.stores import OnNote
from pipelines.publish.versions import change_versions, require_unchanged
from pipelines.reconcile.months import month_after, write_copy

BUILD: Final = "Run `partner-sync versions build`, look at the month, then close it."
SYNC: Final = "Run `partner-sync sync`, look at the month, then close it."
Refusal = tuple[str, str]  # why, and what to do
TIME: Final = "%Y-%m-%d %H:%M %Z"
TERMS: Final = """
SELECT basis.as_of, basis.time_zone, basis.grace_days FROM reconciliation.basis AS basis
"""
NOT_EVALUATED: Final = """
SELECT rules.rule, rules.reason FROM reconciliation.rules AS rules
WHERE list_contains($rules, rules.rule) AND NOT rules.evaluated
"""
CONNECTIONS: Final = """
SELECT used.connection FROM reconciliation.used AS used WHERE used.month = $month
UNION
SELECT billed.connection FROM reconciliation.billed AS billed WHERE billed.month = $month
"""
PROOFS: Final = """
SELECT
    loads.connection, loads.stream, max_by(loads.complete, loads.valid_time) AS is_complete,
    max(loads.started_at) FILTER (loads.complete) AS began_at
FROM meta.loads AS loads
GROUP BY loads.connection, loads.stream
"""
LISTS: Final = {"partners", "usage", "billing"}
STATES: Final = """
SELECT closes.month, closes.number, closes.state, closes.changed_records, closes.net_difference
FROM reconciliation.closes AS closes
"""


@dataclass(frozen=True)
class Signing:
    """Who signs off a month; `month` is its first day."""

    month: date
    preparer: str
    reviewer: str
    note: str = ""


def close_month(session: AppSession, signing: Signing, on_note: OnNote = lambda _note: None) -> str:
    """Copy a month of the published version and record who signed it off; return a sentence.

    Raises ConfigurationError where that is not allowed, StorageFailed; nothing is written then.
    """
    mapping = session.home.mapping_file
    with change_versions(session, on_note):
        content = mapping.read_bytes() if mapping.exists() else b""
        version = session.warehouse.require_published()
        require_unchanged(session.metadata, version)
        with closing(session.warehouse.open(version.number)) as db:
            for why, remedy in _refusals(session, signing, db):
                text = f"{signing.month:%Y-%m} cannot be closed: {why.rstrip('.')}."
                raise ConfigurationError(f"{text} Nothing was written.", remedy)
            close = _new_close(session, signing, version.number)
            folder = copy_folder(session, close.month, close.number)
            close.manifest_sha256 = write_copy(db, close, folder, content)
        with session.metadata.transaction() as rows:
            rows.add(close)
    return (
        f"{close.month:%Y-%m} is closed as published in version {close.version}. Its copy is "
        f"{folder}. The SHA-256 of its manifest is {close.manifest_sha256}."
    )


def _new_close(session: AppSession, signing: Signing, version: int) -> Close:
    """Return a close with a number above all that a row or a folder of the month has."""
    folders = copy_folder(session, signing.month, 1).parent.glob("*")
    numbers = [int(folder.name) for folder in folders if folder.name.isdecimal()]
    numbers += [
        each.number for each in read_closes(session).values() if each.month == signing.month
    ]
    return Close(
        month=signing.month,
        number=max(numbers, default=0) + 1,
        preparer=signing.preparer.strip(),
        reviewer=signing.reviewer.strip(),
        note=signing.note,
        closed_at=utc_now(session.clock),
        version=version,
        manifest_sha256="",
    )


def _refusals(
    session: AppSession, signing: Signing, db: duckdb.DuckDBPyConnection
) -> Iterator[Refusal]:
    """Yield why a month cannot be closed; the first counts."""
    preparer, reviewer = (name.strip() for name in (signing.preparer, signing.reviewer))
    if not preparer or not reviewer or preparer.casefold() == reviewer.casefold():
        yield "preparer and reviewer must be two people", "Name them: --preparer and --reviewer."
    for each in read_closes(session).values():
        if each.month == signing.month and each.reopened_at is None:
            yield (
                f"{each.preparer} and {each.reviewer} closed it at {each.closed_at:{TIME}}",
                "Run `partner-sync close reopen` with --reason first.",
            )
    yield from _not_reconciled(session, db)
    yield from _not_proven(session, signing.month, db)


def _not_reconciled(session: AppSession, db: duckdb.DuckDBPyConnection) -> Iterator[Refusal]:
    version = session.warehouse.require_published()
    if is_outdated(session, version, read_inputs(session)):
        yield f"version {version.number} lacks newer decisions, closes or another mapping", BUILD
    rules = {"rules": ["matches", "summary"]}
    for rule, reason in db.execute(NOT_EVALUATED, rules).fetchall():
        yield f"{rule} is not evaluated: {reason}", REMEDY


def _not_proven(
    session: AppSession, month: date, db: duckdb.DuckDBPyConnection
) -> Iterator[Refusal]:
    """Yield what is not proven complete after the month and its grace.

    Of connections that are not configured any more, those count that have records of the month.
    """
    as_of, time_zone, grace_days = db.execute(TERMS).fetchall()[0]
    if month > as_of.date():
        yield f"it has not begun: the data is of {as_of:{TIME}}", "Check the month."
    day = month_after(month) + timedelta(days=grace_days)
    ends = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(time_zone))
    if as_of < ends:
        why = f"it ends at {ends:{TIME}}, with grace_days, and the data is of {as_of:{TIME}}"
        yield why, f"Wait until then. {SYNC}"
    found = {name for (name,) in db.execute(CONNECTIONS, {"month": month}).fetchall()}
    proofs = {(each["connection"], each["stream"]): each for each in select(db, PROOFS, {})}
    lists = {(name, each.name) for name, streams in session.lists().items() for each in streams}
    lists |= {each for each in proofs if each[0] in found}
    for connection, stream in sorted(each for each in lists if each[1] in LISTS):
        proof = proofs.get((connection, stream))
        if proof is None or not proof["is_complete"]:
            why = "proven complete" if proof else "loaded"
            yield f"{stream} of {connection} is not {why}", SYNC
        elif proof["began_at"] < ends:
            began = f"{proof['began_at']:{TIME}}"
            yield f"{stream} of {connection} was read at {began}, before {ends:{TIME}}", SYNC
    if not found:
        yield "the published version has no record of it", "Check the month and the mapping."


def reopen_month(session: AppSession, month: date, person: str, reason: str) -> str:
    """Record that a month is open again; its copy stays. Raises ConfigurationError."""
    with change_versions(session, lambda _note: None), session.metadata.transaction() as rows:
        query = sqlalchemy.select(Close).where(Close.month == month, Close.reopened_at.is_(None))
        close = rows.scalar(query)
        if close is None or not reason.strip():
            why = "it is not closed" if close is None else "a reason is needed"
            raise ConfigurationError(
                f"{month:%Y-%m} cannot be reopened: {why}. Nothing was changed.",
                "Run `partner-sync close list`, then `partner-sync close reopen` with --reason.",
            )
        close.reopened_at = utc_now(session.clock)
        close.reopened_by, close.reopened_reason = person, reason
    return f"{month:%Y-%m} is open again. Copy {close.number:03} stays as it was signed off."


def list_closes(session: AppSession) -> list[Row]:
    """Return every close with what the published version says of it.

    `problem` says why a month is not compared with its copy.
    """
    states = dict[Any, Row]()
    problem = "The published version does not show it yet. Run `partner-sync versions build`."
    with (
        suppress(duckdb.CatalogException, PartnerSyncError),
        closing(session.warehouse.open()) as db,
    ):
        states = {(each.pop("month"), each.pop("number")): each for each in select(db, STATES, {})}
        for _rule, reason in db.execute(NOT_EVALUATED, {"rules": ["closes"]}).fetchall():
            problem = reason
    names = [column.name for column in Close.__table__.columns][1:]
    unknown = {"state": None, "changed_records": None, "net_difference": None}
    return [
        {"month": f"{each.month:%Y-%m}"}
        | {name: getattr(each, name) for name in names}
        | states.get((each.month, each.number), unknown)
        | ({"state": "reopened"} if each.reopened_at else {})
        | {"problem": None if (each.month, each.number) in states else problem}
        for each in read_closes(session).values()
    ]
