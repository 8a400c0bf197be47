"""Other field names: the same usage and billing records with other names and another shape.

Here: one table for each list, applied to a record when it is written. Not here: the records as they
are otherwise (usage, billing), and lists whose fields the interface shows.
"""

import re
from collections.abc import Callable
from typing import Literal

FieldNames = Literal["usual", "other"]
Write = Callable[[int, int], list[bytes]]

PERIOD = re.compile(rb'"period":{"start":"(\d{4}-\d\d)[^}]*}')
NAME = re.compile(rb'"(\w+)":')  # no text has it: quotes within texts are escaped
BOTH = {
    "partnerId": "reseller",
    "currency": "ccy",
    "quantity": "units",
    "unitPrice": "rate",
    "amount": "charge",
    "updatedAt": "changedAt",
}
OTHER = {
    "usage": BOTH
    | {
        "usageId": "recordId",
        "organizationId": "account",
        "planId": "product",
        "metric": "meter",
        "recordedAt": "bookedAt",
        "sequence": "number",
        "reference": "voucher",
        "events": "incidents",
        "note": "remark",
    },
    "billing": BOTH
    | {
        "billingId": "documentNo",
        "invoiceNumber": "serial",
        "issuedAt": "documentDate",
        "dueAt": "payableBy",
        "subtotal": "net",
        "tax": "vat",
        "total": "gross",
        "status": "state",
        "kind": "documentType",
        "lines": "items",
        "usageId": "recordRef",
        "description": "text",
        "credit": "allowance",
    },
}


def named(names: FieldNames, stream: str, write: Write) -> Write:
    """Give the writer of a list's records with these names."""
    if names == "usual":
        return write
    table = {old.encode(): new.encode() for old, new in OTHER[stream].items()}

    def renamed(row: bytes) -> bytes:
        row = PERIOD.sub(rb'"servicePeriod":"\1"', row)
        return NAME.sub(lambda found: b'"%b":' % table.get(found[1], found[1]), row)

    return lambda start, stop: [renamed(row) for row in write(start, stop)]
