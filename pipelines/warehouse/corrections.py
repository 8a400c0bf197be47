"""Closes and what has changed since, as analysts read it: `reconciliation.closes`, `corrections`.

A change is posted once, to the month that was open when it was found; what was posted is never
changed, so that all postings of a record add up to what it is worth more. Not here: what has
changed (outdated).
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

import duckdb
import pyarrow as pa
from sqlalchemy import Engine

from pipelines.state import closes
from pipelines.state.closes import Close, Kind, Posting
from pipelines.state.erasure import INSTEAD
from pipelines.warehouse import outdated
from pipelines.warehouse.database import fill, literal, together
from pipelines.warehouse.frozen import SIDES, Copies
from pipelines.warehouse.outdated import NONE, About, Change, net, said

LONGEST = timedelta(days=31)
UNREADABLE = "not compared, `partner-sync verify` says more of its frozen copy"
TABLES = {
    "closes": (
        "month DATE, number INTEGER, state VARCHAR, preparer VARCHAR, reviewer VARCHAR, "
        "closed_at TIMESTAMPTZ, note VARCHAR, manifest_sha256 VARCHAR, records BIGINT, "
        "changed BIGINT, net_difference VARCHAR, said VARCHAR"
    ),
    "corrections": (
        "month DATE, connection VARCHAR, side VARCHAR, id VARCHAR, partner VARCHAR, "
        "currency VARCHAR, amount_then DECIMAL(38, {scale}), amount_now DECIMAL(38, {scale}), "
        "difference DECIMAL(38, {scale}), why VARCHAR, posted_to DATE, seen_at TIMESTAMPTZ"
    ),
}
COMMENTS = {
    "closes": "every close of a month, and whether its records are still as they were signed off",
    "closes.month": "the first day of the month that was closed",
    "closes.number": "of the frozen copy: archive/closes/<month>/<number>",
    "closes.state": "CLOSED, OUTDATED (something has changed since) or REOPENED",
    "closes.preparer": "who prepared the close",
    "closes.reviewer": "who reviewed it",
    "closes.closed_at": "when it was signed off",
    "closes.note": "what was said about it then",
    "closes.manifest_sha256": "of the frozen copy's manifest, which has the hash of every file",
    "closes.records": "used and billed records in the frozen copy",
    "closes.changed": "records that are not as they were; NULL where they are not compared",
    "closes.net_difference": "what they are more or less worth now, by currency",
    "closes.said": "the same in words",
    "corrections": "changes of closed months, each posted once; what was posted is never changed",
    "corrections.month": "the first day of the closed month that it is of",
    "corrections.connection": "whose credentials read the record",
    "corrections.side": "usage or billing",
    "corrections.id": "the record's identifier; of a bill's line, bill#place",
    "corrections.partner": "the partner's identifier",
    "corrections.currency": "ISO 4217 code; amounts of two currencies are never added",
    "corrections.amount_then": "as signed off, with what was posted until then",
    "corrections.amount_now": "as it is now; NULL where it is gone",
    "corrections.difference": "now less then",
    "corrections.why": "restated, new, gone, or back as it was",
    "corrections.posted_to": "the first day of the month that takes it: open when it was found",
    "corrections.seen_at": "the moment of the data at which it was found",
}


def tell(
    database: duckdb.DuckDBPyConnection, copies: Copies, ledger: Engine, as_of: datetime
) -> None:
    """Write both tables; record first what changed since the last time.

    Each copy is compared on the mapping that it was signed off on: the temporary tables of
    matching are that one's then.
    """
    every, standing = closes.every(ledger), closes.closed(ledger)
    rows, posted = list[list[object]](), list[Posting]()
    for close in every:
        if close.act is Kind.CLOSE and standing.get(close.month) != close:
            rows.append(_row(close, "REOPENED", None, _reopened(every, close)))
    for month, close in standing.items():
        try:
            changes = outdated.changes(database, copies, close, as_of)
        except (OSError, pa.ArrowException) as error:
            rows.append(_row(close, "CLOSED", None, f"{UNREADABLE}: {error}"))
            continue
        before = closes.posted(ledger, close)
        to = _open(month, standing)
        closes.post(ledger, [*_postings(changes, before, close, (to, as_of))])
        posted += closes.posted(ledger, close)
        business = any(each.why != "erased" for each in changes)
        rows.append(_row(close, "OUTDATED" if business else "CLOSED", changes, said(changes)))
    _write(database, sorted(rows, key=lambda row: row[:2]), posted)


def _open(month: date, closed: Mapping[date, Close]) -> date:
    """Return the first month after one that is not closed."""
    following = (month + LONGEST).replace(day=1)
    return _open(following, closed) if following in closed else following


def _postings(
    changes: Sequence[Change],
    before: Sequence[Posting],
    close: Close,
    to: tuple[date, datetime],
) -> Iterator[Posting]:
    """Yield what is not posted yet: every record's postings add up to what it is worth more."""
    sums, last = dict[About, Decimal](), dict[About, Posting]()
    for each in before:
        sums[each.about] = sums.get(each.about, NONE) + (each.difference or NONE)
        last[each.about] = each
    for change in changes:
        done = sums.pop(change.about, NONE)
        more = (change.difference or NONE) - done
        if change.why == "erased" or (change.about in last and not more):
            continue
        known = None if change.difference is None else more
        then = change.amount_then if not done else (change.amount_then or NONE) + done
        yield _posting(close, change.about, (then, change.amount_now, known), change.why, to)
    for about, done in sums.items():
        if done and INSTEAD not in about:
            now = last[about].amount_now
            amounts = (now, (now or NONE) - done, -done)
            yield _posting(close, about, amounts, "back", to)


def _posting(
    close: Close,
    about: About,
    amounts: tuple[Decimal | None, Decimal | None, Decimal | None],
    why: str,
    to: tuple[date, datetime],
) -> Posting:
    side, connection, record, partner, currency = about
    whose = (connection, str(side), record, partner, currency)
    return Posting(close.month, close.number, *whose, *amounts, why, *to)


def _of(each: Posting) -> tuple[str | None, ...]:
    return each.side, each.id, each.partner, each.currency


def _reopened(every: Sequence[Close], close: Close) -> str:
    """Say who opened a month again after a close of it."""
    later = every[every.index(close) + 1 :]
    act = next(each for each in later if each.month == close.month and each.act is Kind.REOPEN)
    return f"opened again by {act.preparer} at {act.at:%Y-%m-%d %H:%M} UTC: {act.note}"


def _row(close: Close, state: str, changes: Sequence[Change] | None, words: str) -> list[object]:
    people = [close.preparer, close.reviewer, close.at, close.note or None]
    count = None if changes is None else len(changes)
    sides = {side: net([each for each in changes or () if each.side == side]) for side in SIDES}
    told = {side: sums for side, sums in sides.items() if sums}
    nets = "; ".join(f"{side} {sums}" if len(told) > 1 else sums for side, sums in told.items())
    copy = [close.sha256, close.records]
    return [close.month, close.number, state, *people, *copy, count, nets or None, words]


def _write(
    database: duckdb.DuckDBPyConnection, rows: Sequence[list[object]], posted: Sequence[Posting]
) -> None:
    """Write both tables, and say what is in them."""
    amounts = [(each.amount_then, each.amount_now, each.difference) for each in posted]
    digits = [-int(each.as_tuple().exponent) for row in amounts for each in row if each is not None]
    scale = max([4, *digits])
    database.execute("CREATE SCHEMA IF NOT EXISTS reconciliation")
    for table, columns in TABLES.items():
        made = columns.format(scale=scale)
        database.execute(f"CREATE OR REPLACE TABLE reconciliation.{table} ({made})")
    fill(database, "reconciliation.closes", rows)
    lines = [
        [each.month, each.connection, *_of(each), *three, each.why, each.posted_to, each.seen_at]
        for each, three in zip(posted, amounts, strict=True)
    ]
    fill(database, "reconciliation.corrections", lines)
    kinds = {name: "COLUMN" if "." in name else "TABLE" for name in COMMENTS}
    together(
        database,
        (
            f"COMMENT ON {kinds[name]} reconciliation.{name} IS {literal(text)}"
            for name, text in COMMENTS.items()
        ),
    )
