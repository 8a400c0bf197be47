"""What the service of the kept homes said in each night.

Night 1 is the first. In night 2 some fields get values of other types, and one bill is corrected.
In night 3 a record of September changes after its month was closed. In night 4 most bills are
missing, so that their scan is held. From night 5 on all is as in night 3, with one new record.
"""

from decimal import Decimal
from typing import Any

Record = dict[str, Any]
PARTNERS = [f"{number:024x}" for number in range(1, 5)]
CURRENCIES = ("EUR", "EUR", "eur", "JPY")  # by partner
TINY = 1.7763568394002505e-15  # what is left of 0.1 + 0.2 - 0.3, many times over
USAGE = 48
SIGNED = "2026-09"


def lists(night: int) -> dict[str, list[Record]]:
    """Return the three lists of a night."""
    usage = [_used(number) for number in range(USAGE)]
    bills = _bills(usage)
    partners = [
        {"partnerId": each, "name": f"Partner {number}", "externalId": f"E{number}"}
        for number, each in enumerate(PARTNERS, 1)
    ]
    if night >= 2:
        _change_types(usage)
        partners[0]["name"] = "Partner One"
    else:
        bills[1]["lines"][0]["amount"] = "100.00"
        bills[1]["total"] = f"{sum(Decimal(each['amount']) for each in bills[1]['lines'])}"
    if night >= 3:
        usage[5] |= {"amount": "9.75", "updatedAt": "2026-10-12T10:00:00Z"}
    if night == 4:
        bills = bills[:3]
    if night >= 5:
        usage.append(_used(USAGE))
    return {"partners": partners, "usage": usage, "billing": bills}


def _used(number: int) -> Record:
    """Return a usage record: half of them of the month that is signed off, half of the next."""
    partner = number % len(PARTNERS)
    quantity = number % 7 + 1
    month = SIGNED if number < USAGE // 2 else "2026-10"
    amount = f"{quantity * 150}" if CURRENCIES[partner] == "JPY" else f"{quantity * 1.25:.2f}"
    return {
        "usageId": f"u-{number:03}",
        "partnerId": PARTNERS[partner],
        "period": month,
        "recordedAt": f"{month}-{number % 20 + 1:02}T12:00:00Z",
        "updatedAt": f"{month}-{number % 20 + 1:02}T12:00:00Z",
        "quantity": quantity,
        "amount": amount,
        "currency": CURRENCIES[partner],
        "listAmount": "1500",  # digits alone, in every record
        "deviation": TINY if number % 2 else 0,
        "seats": number,
        "reference": f"A-{number}",
        "isTest": number % 5 == 0,
        "day": f"{month}-{number % 20 + 1:02}",
        "tags": ["a", f"t{number % 3}"],
    }


def _change_types(usage: list[Record]) -> None:
    """Send some values in other types than in the night before."""
    usage[1]["seats"] = "12"
    usage[2]["reference"] = 1000
    usage[3]["isTest"] = 1
    usage[4]["day"] = "2026-09-05T08:30:00Z"
    usage[6]["quantity"] = str(usage[6]["quantity"])  # of the month that is signed off
    usage[30]["quantity"] = str(usage[30]["quantity"])
    usage[31]["listAmount"] = "12.50"


def _bills(usage: list[Record]) -> list[Record]:
    """Return two bills of each partner and month, without one usage record; and one more.

    One has no period, and names usage that has one.
    """
    bills: list[Record] = []
    for month in (SIGNED, "2026-10"):
        for partner, currency in zip(PARTNERS, CURRENCIES, strict=True):
            about = (month, partner)
            used = [each for each in usage if (each["period"], each["partnerId"]) == about]
            for part in (used[::2], used[1::2]):
                bills.append(_bill(len(bills), part, currency.upper()))
    lost = bills[3]["lines"].pop()  # not billed
    bills[3]["total"] = f"{Decimal(bills[3]['total']) - Decimal(lost['amount'])}"
    del bills[7]["period"]
    return bills


def _bill(number: int, used: list[Record], currency: str) -> Record:
    lines = [
        {"usageId": each["usageId"], "quantity": each["quantity"], "amount": each["amount"]}
        for each in used
    ]
    return {
        "billingId": f"b-{number:02}",
        "partnerId": used[0]["partnerId"],
        "period": used[0]["period"],
        "total": str(sum(Decimal(each["amount"]) for each in lines)),
        "currency": currency,
        "status": "paid",
        "kind": "invoice",
        "issuedAt": f"{used[0]['period']}-28T12:00:00Z",
        "lines": lines,
    }
