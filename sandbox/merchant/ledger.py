"""What an organization is owed and paid: gateways, invoices, methods, transactions, forecast.

Here: their seeded records; lines add up to the invoice's amount. All fields are assumed. Not
here: the people (people), what callers write (written).
"""

from typing import Any

from sandbox.data.plan import PLANS
from sandbox.merchant.office import Draw, Office, before_epoch, minor, moment, money
from sandbox.merchant.people import CUSTOMERS

JSON = dict[str, Any]
GATEWAYS = 3
INVOICES = 240
PAYMENT_METHODS = 90
TRANSACTIONS = 300
PROVIDERS = ("Northbank", "Helvetia Acquiring", "SEPA direct")
KINDS = (("card",), ("card", "bank_account"), ("bank_account",))
BRANDS = ("visa", "mastercard", "amex")
STATUSES = ("paid", "paid", "open", "overdue", "void")
REASONS = ("insufficient_funds", "card_expired", "declined_by_issuer")


def customer_id(office: Office, place: int) -> str:
    """Give the identifier of the customer at a place; places wrap around."""
    return office.draw("customers", place % CUSTOMERS).id


def gateway(office: Office, index: int) -> JSON:
    """Give a gateway that payments can go through."""
    draw = office.draw("gateways", index)
    return {
        "gatewayId": draw.id,
        "name": f"{PROVIDERS[index]} {office.currency}",
        "provider": PROVIDERS[index],
        "kinds": list(KINDS[index]),
        "currencies": [office.currency],
        "status": "active" if index < GATEWAYS - 1 else draw.of(("active", "inactive"), 0),
        "createdAt": moment(before_epoch(600 + index)),
    }


def _lines(draw: Draw) -> list[JSON]:
    lines = []
    for nth in range(draw.choices[0] % 3 + 1):
        quantity, price = draw.choices[nth + 1] % 9 + 1, draw.number(nth + 4) + 1
        lines.append(
            {
                "description": PLANS[draw.choices[nth + 7] % len(PLANS)].name,
                "quantity": quantity,
                "unitPrice": money(price),
                "amount": money(quantity * price),
            }
        )
    return lines


def invoice(office: Office, index: int) -> JSON:
    """Give an invoice; nothing is due of what is paid or void."""
    draw = office.draw("invoices", index)
    lines = _lines(draw)
    amount = money(sum(minor(line["amount"]) for line in lines))
    status = draw.of(STATUSES, 10)
    issued = before_epoch(INVOICES - index, draw.choices[11])
    return {
        "invoiceId": draw.id,
        "invoiceNumber": f"{index + 1:08d}",
        "customerId": customer_id(office, index),
        "status": status,
        "currency": office.currency,
        "amount": amount,
        "amountDue": amount if status in ("open", "overdue") else money(0),
        "issuedAt": moment(issued),
        "dueAt": before_epoch(INVOICES - index - 30).date().isoformat(),
        "lines": lines,
    }


def payment_method(office: Office, index: int) -> JSON:
    """Give a saved payment method; a bank account has neither brand nor expiry."""
    draw = office.draw("payment-methods", index)
    card = bool(draw.choices[0] % 4)
    return {
        "paymentMethodId": draw.id,
        "customerId": customer_id(office, index),
        "gatewayId": office.draw("gateways", 0 if card else 1).id,
        "kind": "card" if card else "bank_account",
        "brand": draw.of(BRANDS, 1) if card else None,
        "last4": f"{draw.number(2) % 10_000:04d}",
        "expiry": f"20{27 + draw.choices[4] % 4}-{draw.choices[5] % 12 + 1:02d}" if card else None,
        "isDefault": index < CUSTOMERS,
        "createdAt": moment(before_epoch(200 + draw.choices[6])),
    }


def transaction(office: Office, index: int) -> JSON:
    """Give a transaction, newer ones first; only a failed one has a reason."""
    draw = office.draw("transactions", index)
    billed = invoice(office, draw.number(0) % INVOICES)
    status = draw.of(("succeeded", "succeeded", "succeeded", "failed", "pending"), 2)
    record: JSON = {
        "transactionId": draw.id,
        "customerId": billed["customerId"],
        "invoiceId": billed["invoiceId"] if draw.choices[3] % 5 else None,
        "gatewayId": office.draw("gateways", draw.choices[4] % 2).id,
        "kind": draw.of(("charge", "charge", "charge", "refund"), 5),
        "status": status,
        "amount": billed["amount"],
        "currency": office.currency,
        "createdAt": moment(before_epoch(index, draw.choices[6])),
    }
    if status == "failed":
        record["failureReason"] = draw.of(REASONS, 7)
    return record


def gateways(office: Office) -> list[JSON]:
    """Give all gateways."""
    return [gateway(office, index) for index in range(GATEWAYS)]


def invoices(office: Office) -> list[JSON]:
    """Give all invoices."""
    return [invoice(office, index) for index in range(INVOICES)]


def payment_methods(office: Office) -> list[JSON]:
    """Give all saved payment methods."""
    return [payment_method(office, index) for index in range(PAYMENT_METHODS)]


def transactions(office: Office) -> list[JSON]:
    """Give all transactions."""
    return [transaction(office, index) for index in range(TRANSACTIONS)]


def forecast(office: Office) -> list[JSON]:
    """Give what will be collected by itself, two payments a day: all that is due of invoices."""
    due = [one for one in invoices(office) if minor(one["amountDue"])]
    return [
        {
            "scheduledOn": before_epoch(-1 - index // 2).date().isoformat(),
            "customerId": one["customerId"],
            "invoiceId": one["invoiceId"],
            # The first methods are the customers' default ones, in the order of the customers.
            "paymentMethodId": office.draw("payment-methods", customer_place(one)).id,
            "amount": one["amountDue"],
            "currency": office.currency,
        }
        for index, one in enumerate(due)
    ]


def customer_place(billed: JSON) -> int:
    """Give the place of an invoice's customer."""
    return (int(billed["invoiceNumber"]) - 1) % CUSTOMERS
