"""Small books of usage and bills, in a home of their own, with the mapping of their fields."""

import hashlib
from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from pipelines.app.nightly import build_with_books
from pipelines.core.files import write_durably
from pipelines.metadata.decisions import add_decision
from pipelines.metadata.tables import Decision
from tests.versions.homes import Reading, Record, Stores, home_of, read

MAPPING = """
[partners]
id = "id"
[usage]
id = "id"
partner = "partner"
period = "day"
quantity = "quantity"
amount = "amount"
currency = "currency"
recorded = "recorded"
updated = "updated"
[billing]
id = "id"
partner = "partner"
period = "month"
amount = "total"
currency = "currency"
issued = "issued"
status = "status"
counted_statuses = ["paid"]
kind = "kind"
credit_kinds = ["credit"]
line_usage = "lines[].usage"
line_quantity = "lines[].quantity"
line_amount = "lines[].amount"
"""
SANDBOX_MAPPING = """
[usage]
id = "usageId"
partner = "partnerId"
organization = "organizationId"
period = "period.start"
plan = "planId"
metric = "metric"
quantity = "quantity"
price = "unitPrice"
amount = "amount"
currency = "currency"
recorded = "recordedAt"
updated = "updatedAt"
[billing]
id = "billingId"
partner = "partnerId"
period = "period.start"
amount = "total"
currency = "currency"
issued = "issuedAt"
updated = "updatedAt"
due = "dueAt"
tax = "tax"
number = "invoiceNumber"
status = "status"
counted_statuses = ["paid", "issued", "open", "overdue"]
paid_statuses = ["paid"]
kind = "kind"
credit_kinds = ["credit_note"]
line_usage = "lines[].usageId"
line_quantity = "lines[].quantity"
line_price = "lines[].unitPrice"
line_amount = "lines[].amount"
"""
# Every field once, with digits behind the point, so that all columns have their types.
FIRST = "first"


def used(record_id: str, amount: str | int = "5.00", **fields: Any) -> Record:
    return {
        "id": record_id,
        "partner": FIRST,
        "day": "2026-09-10",
        "quantity": 1,
        "amount": amount,
        "currency": "EUR",
        "recorded": "2026-09-10T12:00:00Z",
        "updated": "2026-09-10T12:00:00Z",
        **fields,
    }


def line(usage: str | None, amount: str | int | None = "5.00", quantity: int = 1) -> Record:
    return {"usage": usage, "quantity": quantity, "amount": amount}


def bill(bill_id: str, *lines: Record, **fields: Any) -> Record:
    return {
        "id": bill_id,
        "partner": FIRST,
        "month": "2026-09-01",
        "total": str(sum(Decimal(each["amount"]) for each in lines)),
        "currency": "EUR",
        "issued": "2026-09-30T22:00:00Z",
        "status": "paid",
        "kind": "invoice",
        "lines": list(lines),
        **fields,
    }


def partners(names: Iterable[str]) -> list[Record]:
    return [{"id": name, "name": f"{name} Ltd", "externalId": f"x-{name}"} for name in names]


def publish(
    stores: Stores, *, mapping: str = MAPPING, complete: bool = True, **lists: list[Record]
) -> None:
    """Read lists of one connection and publish a version of them, reconciled."""
    write_durably(stores.home.mapping_file, mapping.encode())
    for stream, records in lists.items():
        read(stores, Reading(records, stream, complete=complete, page_size=50))
    build_with_books(stores)


def home_with(usage: list[Record], billing: list[Record], names: Iterable[str] = (FIRST,)) -> Any:
    """Return a fixture: a home in which these lists are published."""
    named = partners(names)

    def make(stores: Stores) -> None:
        publish(stores, partners=named, usage=usage, billing=billing)

    # By what is in it, as all processes that run tests share a home.
    content = repr((named, usage, billing))
    make.__qualname__ = hashlib.sha256(content.encode()).hexdigest()
    return home_of(make)


def decide(stores: Stores, kind: str, break_id: str, **details: Any) -> None:
    """Record a decision of a person about a break, with the break as it is now."""
    sql = f"SELECT difference, rows FROM reconciliation.breaks WHERE break_id = '{break_id}'"
    ((difference, rows),) = stores.rows(sql)
    stores.clock.now += timedelta(hours=1)
    decision = Decision(
        decided_at=stores.clock.now,
        person="ann",
        kind=kind,
        subject=break_id,
        reason="seen",
        details={"difference": str(difference), "rows": rows, **details},
    )
    with stores.metadata.transaction() as session:
        add_decision(session, decision)
