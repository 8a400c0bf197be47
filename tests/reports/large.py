"""Lists as large as those of many partners, without books: to make these takes minutes."""

import random
from decimal import Decimal
from typing import Any, Final

from pipelines.finance.reports.bill_lines import MOST_LINES
from pipelines.finance.reports.listing import Detail
from pipelines.finance.reports.listings import LISTINGS, PARTS

PARTNERS: Final = 5_000
BILLS: Final = 100_000
BREAKS: Final = 1_000
ITEMS: Final = 20_000
SAME_USAGE: Final = 2_000
MONTHS: Final = tuple(f"2026-{month:02}" for month in range(12, 0, -1))
CURRENCIES: Final = ("EUR", "USD", "GBP", "JPY")
DUE_IN: Final = ("overdue: 1 to 30 days", "overdue: over 90 days", "next 7 days", "later")
WORDS: Final = ("Acme", "Nova", "Polar", "Delta", "Atlas", "Orion", "Sigma", "Terra", "Union")
SIDES: Final = ("used", "billed")
CONNECTIONS: Final = ("acme", "north")
KINDS: Final = ("Ltd", "GmbH", "SARL", "Inc", "S.p.A.", "Sp. z o.o.")


def large_details(seed: int = 59) -> tuple[Detail, ...]:
    """Return the lists; every fourth month of a partner has a difference."""
    chance = random.Random(seed)
    names = [
        f"{chance.choice(WORDS)} {chance.choice(WORDS)} {number} {chance.choice(KINDS)}"
        for number in range(PARTNERS)
    ]
    made = Maker(chance, names)
    rows = {
        "months": [made.amounts(month, None) for month in MONTHS for _each in CURRENCIES],
        "partners": [made.amounts(None, number) for number in range(PARTNERS)],
        "due": [made.due(number) for number in range(PARTNERS)],
        "breaks": [made.broken(number) for number in range(BREAKS)],
        "records": [made.record(number // 3) for number in range(3 * BREAKS)],
        "resolved": [made.broken(number) for number in range(BREAKS, BREAKS + 200)],
        "partner-months": [
            made.amounts(month, number) for month in MONTHS for number in range(PARTNERS)
        ],
        "bills": [made.bill(number) for number in range(BILLS)],
        "same-usage": [made.same_usage(number) for number in range(SAME_USAGE)],
        "lines": [made.line(number) for number in range(MOST_LINES)],
        "changes": [made.change(number, side) for number in range(PARTNERS) for side in SIDES],
        "items": [made.item(number) for number in range(ITEMS)],
    }
    details = []
    for listing in LISTINGS:
        of_list = rows.get(listing.name)
        if not of_list:
            continue  # as without own books
        columns = {name: [row[name] for row in of_list] for name in of_list[0]}
        details.append(Detail(listing, columns, len(of_list)))
    return tuple(details)


class Maker:
    """Makes rows with all columns of a list, and those that filters read."""

    def __init__(self, chance: random.Random, names: list[str]) -> None:
        self.chance = chance
        self.names = names

    def amount(self, most: int = 2_000_000) -> str:
        cents = self.chance.randrange(most)
        return f"{cents // 100}.{cents % 100:02}"

    def about(self, number: int | None) -> dict[str, Any]:
        if number is None:
            connection = self.chance.choice(CONNECTIONS)
            return {"connection": connection, "currency": self.chance.choice(CURRENCIES)}
        return {
            "connection": CONNECTIONS[number % 2],
            "currency": CURRENCIES[number % len(CURRENCIES)],
            "partner": self.names[number],
            "partner_id": f"{number:08}",
        }

    def amounts(self, month: str | None, number: int | None) -> dict[str, Any]:
        used = self.amount()
        is_wrong = self.chance.random() < 0.25
        return {
            **self.about(number),
            "month": month,
            "signed": "not signed off",
            "answer": "open breaks" if is_wrong else "balanced",
            "used": used,
            "billed": self.amount() if is_wrong else used,
            "credited": "0",
            "difference": f"-{self.amount()}" if is_wrong else "0",
            "unbilled": "0",
            "overbilled": "0",
            "other": "0",
            "open_breaks": int(is_wrong),
            "age": 30 if is_wrong else None,
            "verdict": "out of balance" if is_wrong else "balanced",
            "cause": "no bill for the month" if is_wrong else None,
        }

    def broken(self, number: int) -> dict[str, Any]:
        return {
            **self.about(number * 7 % PARTNERS),
            "break_id": f"B{self.chance.randrange(16**12):012x}",
            "severity": self.chance.choice(("high", "medium", "low")),
            "month": self.chance.choice(MONTHS),
            "cause": "no bill for the month",
            "used": self.amount(),
            "billed": None,
            "difference": f"-{self.amount()}",
            "age": self.chance.randrange(300),
            "first_seen": "2026-11-02",
            "owner": None,
            "uncertain": None,
            "rows": 3,
            "remedy": "Request the missing bill.",
            "resolved_on": "2026-11-02",
            "resolved_by": "ann",
            "reason": "seen",
        }

    def due(self, number: int) -> dict[str, Any]:
        overdue, later = self.amount(), self.amount()
        is_wrong = self.chance.random() < 0.25
        return {
            **self.about(number),
            "open": f"{Decimal(overdue) + Decimal(later)}",
            "overdue": overdue,
            "next_7": None,
            "next_30": later,
            "later": None,
            "undated": None,
            "oldest": self.chance.randrange(300),
            "in_question": self.amount() if is_wrong else None,
            "unpaid": self.amount() if is_wrong else None,
            "credited": f"-{self.amount()}" if is_wrong else None,
            "paid": self.amount() if is_wrong else None,
            "unknown": None,
        }

    def same_usage(self, number: int) -> dict[str, Any]:
        return {
            "bill": number,
            "other": f"INV-2026-12-{number:06}",
            "kind": self.chance.choice(("void", "credit note")),
            "records": self.chance.randrange(1, 9),
            "others": 1,
        }

    def record(self, number: int) -> dict[str, Any]:
        return {
            "break_id": f"B{number:012x}",
            "side": "usage record",
            "id": f"usage-{self.chance.randrange(16**8):08x}",
            "bill": None,
            "issued": None,
            "quantity": str(self.chance.randrange(10_000)),
            "amount": self.amount(),
        }

    def bill(self, number: int) -> dict[str, Any]:
        month = MONTHS[2 * number // BILLS]
        is_open = self.chance.random() < 0.3
        return {
            **self.about(number * PARTNERS // (BILLS // 2) % PARTNERS),
            "bill": f"INV-{month}-{number:06}",
            "month": month,
            "issued": f"{month}-{1 + number % 28:02}",
            "due": f"{month}-{1 + number % 28:02}",
            "paid_on": None if is_open else f"{month}-{1 + number % 27:02}",
            "kind": "bill",
            "billed": self.amount(),
            "credited": None,
            "not_counted": None,
            "open": self.amount() if is_open else None,
            "unused": None,
            "payment": "to be paid" if is_open else "paid",
            "due_in": self.chance.choice(DUE_IN) if is_open else None,
        }

    def line(self, number: int) -> dict[str, Any]:
        return {
            "bill": number // 4,
            "line": f"#{number % 4}",
            "lines": 4,
            "reference": f"usage-{self.chance.randrange(16**8):08x}",
            "fee": None,
            "plan": self.chance.choice(KINDS),
            "metric": self.chance.choice(WORDS),
            "region": None,
            "unit": None,
            "quantity": str(self.chance.randrange(10_000)),
            "price": self.amount(1_000),
            "amount": self.amount(),
            "used_on": f"2026-11-{1 + number % 28:02}",
            "used_quantity": "=",
            "used_in": None,
            "used_amount": self.amount() if number % 20 == 0 else "=",
        }

    def change(self, number: int, side: str) -> dict[str, Any]:
        parts: dict[str, Any] = dict.fromkeys(PARTS)
        return {
            **self.about(number),
            "month": MONTHS[0],
            "side": side,
            "before": self.amount(),
            "now": self.amount(),
            "difference": self.amount(),
            **parts,
            "volume": self.amount(),
            "price": self.amount(10_000),
        }

    def item(self, number: int) -> dict[str, Any]:
        parts: dict[str, Any] = dict.fromkeys(PARTS)
        return {
            "change": number // 6,
            "items": 6,
            "others": None,
            "kind": None,
            "plan": self.chance.choice(KINDS),
            "metric": self.chance.choice(WORDS),
            "region": None,
            "unit": None,
            "quantity_before": str(self.chance.randrange(10_000)),
            "quantity": str(self.chance.randrange(10_000)),
            "before": self.amount(),
            "now": self.amount(),
            "difference": self.amount(),
            **parts,
            "volume": self.amount(),
            "price": self.amount(10_000),
        }
