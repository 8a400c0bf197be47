"""What changed of each record, in what counts: against plain Python over the two lists."""

from collections import Counter
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.reconcile.books import FIRST, bill, line, partners, publish, used
from tests.versions.homes import Reading, Record, Stores, read

FOUND = """
SELECT side, id, partner, strftime(month, '%Y-%m'), currency, amount_before, amount_after,
    difference, quantity_before, quantity_after, set_apart
FROM finance.changes
"""
GONE = """
SELECT used, billed, difference FROM finance.open_breaks WHERE rule = 'disappeared'
ORDER BY used NULLS LAST, billed
"""
Row = tuple[Any, ...]
MOVED = {"currency": "USD", "day": "2026-10-10", "partner": "b"}
USAGE = [  # before and after
    (used("same"), used("same")),
    (used("amount"), used("amount", "6.00")),
    (used("quantity"), used("quantity", quantity=2)),
    (used("currency", "240.00"), used("currency", "300.00", currency="USD")),
    (used("moved"), used("moved", **MOVED)),
    (used("away", "1.00"), used("away", "1.00", recorded="2026-09-11T00:00:00Z")),
    (used("withdrawn", "3.00"), None),
    *[(used(f"same {number}"),) * 2 for number in range(12)],
]


def billed(bill_id: str, amount: str, **fields: Any) -> Record:
    return bill(bill_id, line(bill_id, amount), **fields)


BILLS = [
    (billed("restated", "5.00"), billed("restated", "5.50")),
    (billed("voided", "33.21"), billed("voided", "33.21", status="void")),
    (billed("still void", "9.00", status="void"), billed("still void", "8.00", status="draft")),
    (billed("issued", "4.00", status="draft"), billed("issued", "4.00")),
    (billed("note", "2.00", kind="credit"), billed("note", "3.00", kind="credit")),
    (billed("void note", "2.00", status="void"), billed("void note", "2.00", kind="credit")),
    (billed("rebilled", "7.00"), billed("rebilled", "7.00", partner="b", currency="JPY")),
    (billed("voided there", "6.00"), billed("voided there", "6.00", partner="b", status="void")),
    (billed("withdrawn too", "4.00"), None),
    (billed("void and withdrawn", "4.00", status="void"), None),
    (billed("note withdrawn", "2.00", kind="credit"), None),
    *[(billed(f"same {number}", "5.00"),) * 2 for number in range(22)],
]


def worth(side: str, record: Record) -> tuple[Any, Decimal | None, int | None, str | None]:
    """Return where a record counts, with which amount and quantity, and why it is set apart."""
    where = record["partner"], record["day" if side == "usage" else "month"][:7], record["currency"]
    if side == "usage":
        return where, Decimal(record["amount"]), record["quantity"], None
    total = Decimal(record["total"])
    if record["kind"] == "credit":
        return where, -total, None, "credit note"
    is_paid = record["status"] == "paid"
    return where, total if is_paid else None, None, None if is_paid else record["status"]


def changes(side: str, before: Record, after: Record | None) -> list[Row]:
    """Return the rows of one record: one, or two if it moved, or none. `after` None: withdrawn."""
    old, nothing = worth(side, before), (None, None)
    new = worth(side, after) if after else (old[0], *nothing, old[3])
    pairs = [(old[0], old[1:3], new[1:3] if old[0] == new[0] else nothing)]
    if old[0] != new[0]:
        pairs.append((new[0], nothing, new[1:3]))
    return [
        (side, before["id"], f"{partner} Ltd", month, currency, was[0], now[0],
         (now[0] or 0) - (was[0] or 0), was[1], now[1], new[3])
        for (partner, month, currency), was, now in pairs
        if was != now
    ]  # fmt: skip


@pytest.mark.long
def test_what_changed_is_what_counts_less_what_counted(stores: Stores) -> None:
    lists = {"usage": USAGE, "billing": BILLS}
    for at in (0, 1):
        usage, billing = ([*filter(None, (pair[at] for pair in pairs))] for pairs in lists.values())
        publish(stores, partners=partners(["first", "b"]), usage=usage, billing=billing)
    expected = [row for name in lists for pair in lists[name] for row in changes(name, *pair)]
    found = stores.rows(FOUND)
    gone = stores.rows(GONE)
    assert Counter(found) == Counter(expected)
    assert len(found) == 17
    assert [[*map(str, row)] for row in gone] == [
        ["3.00", "None", "0.00"],
        ["None", "-2.00", "0.00"],
        ["None", "4.00", "0.00"],
    ]
    assert {row[-1] for row in found if row[1] in {"voided", "voided there"}} == {"void"}


@pytest.mark.long
def test_usage_is_due_only_if_bills_were_read_since(stores: Stores) -> None:
    late = used("u", day="2026-11-04")
    publish(stores, partners=partners([FIRST]), usage=[late], billing=[bill("o", line("x"))])
    read(stores, Reading([late], connection="old"))
    stores.clock.now += timedelta(days=40)
    read(stores, Reading([late], connection="zen"))
    publish(stores, usage=[late])
    due = "SELECT connection, is_due FROM finance.unbilled_usage ORDER BY ALL"
    assert stores.rows(due) == [("acme", False), ("old", False), ("zen", True)]  # acme has bills
    publish(stores, billing=[bill("o", line("x"))])
    assert stores.rows(due)[0] == ("acme", True)


@pytest.mark.long
def test_a_month_is_judged_by_the_newest_list_of_its_connection(stores: Stores) -> None:
    late, verdicts = used("u", day="2026-11-04"), "SELECT connection, verdict FROM finance.{}"
    for connection in ("zen", "acme"):
        read(stores, Reading(partners([FIRST]), "partners", connection))
        read(stores, Reading([bill("o", line("x"))], "billing", connection))
        stores.clock.now += timedelta(days=40 * (connection == "acme"))
        read(stores, Reading([late], connection=connection))
    publish(stores)
    months = verdicts.format("partner_months WHERE used > 0 ORDER BY ALL")
    assert stores.rows(months) == [("acme", "not proven"), ("zen", "tentative")]
