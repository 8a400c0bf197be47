"""Homes in which months are closed: few records of two lists, on a mapping of their own.

Here: nights of them, and what is published of closes. Not here: closing (test_closing).
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks import archived
from pipelines import clock, run
from pipelines.run import Session, Signing
from pipelines.state.proof import Grade
from pipelines.warehouse import corrections, meta
from pipelines.warehouse.frozen import Copies

STREAMS = ("events", "invoices")
JANUARY, FEBRUARY, MARCH = date(2026, 1, 1), date(2026, 2, 1), date(2026, 3, 1)
MAPPING = """
[usage]
stream = "events"
id = "id"
partner = "partner"
period = "day"
quantity = "quantity"
amount = "amount"
currency = "currency"

[billing]
stream = "invoices"
id = "id"
partner = "partner"
period = "day"
amount = "amount"
currency = "currency"
"""
Amounts = Mapping[str, str]  # by identifier, as 10.00 EUR; the partner and the day follow from it
USED: Amounts = {"u-1": "10.00 EUR", "u-2": "2.60 EUR", "u-3": "700 JPY", "u-9": "1.00 EUR"}
BILLED: Amounts = {"b-1": "12.60 EUR", "b-3": "700 JPY"}
COPY = Path("archive/closes/2026-01/001")
MORE = {**USED, "u-1": "22.40 EUR"}  # 12.40 more than was signed off
SIGNED = Signing(JANUARY, "ann", "bob", "as agreed")


@contextmanager
def home(root: Path, now: datetime = datetime(2026, 3, 20, tzinfo=UTC)) -> Iterator[Session]:
    """Open a home of two lists at a moment."""
    own = archived.settings(root, STREAMS).model_copy(update={"reconcile": True})
    with run.open(own, clock=clock.beginning(now)) as session:
        yield session


def night(
    session: Session,
    number: int,
    used: Amounts,
    billed: Amounts = BILLED,
    grade: Grade = Grade.COMPLETE,
) -> None:
    """Read and fold so many days after the first of January, and say what became of closes.

    A publication says it just so, and much more: that takes a second.
    """
    for stream, amounts in zip(STREAMS, (used, billed), strict=True):
        records = [_record(*each) for each in amounts.items()]
        archived.night(session, stream, number, records, grade)
    (order,) = archived.orders(session, STREAMS)
    failed = [each for each in run.fold(session, order).values() if isinstance(each, Exception)]
    assert not failed
    told(session)


def told(session: Session) -> None:
    """Let the work database say how closes stand."""
    with session.work.writing() as writer:
        as_of = max(fold.ended_at for fold in meta.held(writer).values())
        corrections.tell(writer, Copies(session.archive), session.ledger, as_of)


def _record(identifier: str, worth: str) -> str:
    amount, currency = worth.split()
    month = "02" if identifier.endswith("9") else "01"
    said = {"id": identifier, "partner": f"partner-{identifier[-1]}", "currency": currency}
    return (
        json.dumps(said)[:-1] + f', "day": "2026-{month}-05", "quantity": 1, "amount": {amount}}}'
    )


def ended(session: Session) -> None:
    """Publish January as it was read on the fifth of February."""
    (session.settings.place.config / "mapping.toml").write_text(MAPPING)
    night(session, 35, USED)
    assert run.publish_folded(session)


def closed(session: Session) -> None:
    """Close January then, and publish that."""
    ended(session)
    run.close_month(session, SIGNED)
    assert run.publish_folded(session)


def rows(session: Session, query: str) -> list[dict[str, Any]]:
    """Return rows of the work database."""
    with session.work.writing() as writer:
        found: list[dict[str, Any]] = writer.sql(query).to_arrow_table().to_pylist()
    return found


def stands(session: Session, month: date = JANUARY) -> tuple[str, str, str | None]:
    """Return state, words and net difference of a month's newest close."""
    query = f"FROM reconciliation.closes WHERE month = '{month}' ORDER BY number"
    last = rows(session, query)[-1]
    return last["state"], last["said"], last["net_difference"]


def posted(session: Session) -> list[tuple[str, str, str, Decimal, date]]:
    """Return what was posted: side, record, why, difference, month that takes it."""
    found = rows(session, "FROM reconciliation.corrections ORDER BY seen_at, side DESC, id")
    return [
        (each["side"], each["id"], each["why"], each["difference"], each["posted_to"])
        for each in found
    ]


def contents(folder: Path) -> dict[str, str]:
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def faults(session: Session) -> list[str]:
    return [str(each) for each in run.verify(session, lambda _news: None).faults]
