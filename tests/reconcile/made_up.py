"""Made-up lists of 4 partners, 60 usage records and their 12 bills, with two kinds of names."""

from decimal import Decimal
from typing import Any

Record = dict[str, Any]
Lists = dict[str, list[Record]]


def charge(number: int) -> tuple[int, Decimal, Decimal]:
    """Return quantity, price and what they cost, rounded to cents."""
    quantity, price = 3 + number * 7 % 90, Decimal(113 + number * 37) / 1000
    return quantity, price, (quantity * price).quantize(Decimal("0.01"))


def usual() -> Lists:
    """Return 4 partners, 60 records and their 12 bills with the names that the sandbox has."""
    partners = [
        {"partnerId": f"p{at}", "name": f"P {at}", "externalId": f"x{at}"} for at in range(4)
    ]
    usage: list[Record] = []
    billing: list[Record] = []
    for at in range(60):
        quantity, price, amount = charge(at)
        day = f"2026-09-{1 + at % 28:02}"
        usage.append(
            {
                "usageId": f"u{at}",
                "partnerId": f"p{at // 5 % 4}",
                "organizationId": f"o{at % 7}",
                "planId": f"plan{at % 3}",
                "metric": "calls",
                "quantity": quantity,
                "unitPrice": price,
                "amount": amount,
                "currency": "EUR" if at // 5 % 2 else "USD",
                "period": {"start": f"{day}T00:00:00Z", "end": f"{day}T01:00:00Z"},
                "recordedAt": f"{day}T02:00:00Z",
                "updatedAt": f"{day}T03:00:00Z",
                "sequence": 1000 + at,
                "revision": 1 + at % 2,
            }
        )
    for at in range(12):
        lines = [
            {name: each[name] for name in ("usageId", "quantity", "unitPrice", "amount")}
            for each in usage[5 * at : 5 * at + 5]
        ]
        total = Decimal(sum(each["amount"] for each in lines))
        tax = (total * 19 / 119).quantize(Decimal("0.01"))
        billing.append(
            {
                "billingId": f"b{at}",
                "partnerId": f"p{at % 4}",
                "invoiceNumber": f"{at:08}",
                "period": {"start": "2026-09-01", "end": "2026-09-30"},
                "currency": "EUR" if at % 2 else "USD",
                "issuedAt": "2026-09-30T22:00:00Z",
                "dueAt": "2026-10-30",
                "subtotal": total - tax,
                "tax": tax,
                "total": total,
                "status": ("paid", "open", "void")[at % 3],
                "updatedAt": "2026-10-01T00:00:00Z",
                "lines": lines,
            }
        )
    return {"partners": partners, "usage": usage, "billing": billing}


def other() -> Lists:
    """Return the same with other names and another shape."""
    lists = usual()
    usage_names = {"usageId": "recordId", "partnerId": "reseller", "quantity": "units"}
    usage_names |= {"unitPrice": "rate", "amount": "charge", "currency": "ccy"}
    bill_names = {"billingId": "documentNo", "partnerId": "reseller", "total": "gross"}
    line_names = {"usageId": "recordRef", "quantity": "units", "amount": "charge"}
    period = {"servicePeriod": "2026-09"}
    usage = [
        {**_renamed(each, usage_names), **period, "bookedAt": each["recordedAt"]}
        for each in lists["usage"]
    ]
    billing = [
        {
            **_renamed(each, {**bill_names, "currency": "ccy"}),
            **period,
            "documentDate": "2026-09-30",
            "state": "settled" if at else "DRAFT",
            "documentType": "creditNote" if at == 3 else "invoice",
            "items": [_renamed(line, line_names) for line in each["lines"]],
        }
        for at, each in enumerate(lists["billing"])
    ]
    return {"partners": lists["partners"], "usage": usage, "billing": billing}


def _renamed(record: Record, names: dict[str, str]) -> Record:
    return {new: record[old] for old, new in names.items()}
