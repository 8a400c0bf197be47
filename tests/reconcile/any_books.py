"""Books of random partners: what they mean, how that is spelled, and changes of either.

Each partner has usage of one month and a bill with a line for each record, which balance. A change
gives one of them another meaning, or a value that says nothing (`Odd`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from tests.versions.homes import Record

ZONE = ZoneInfo("America/Sao_Paulo")
MONTHS = ("2026-07", "2026-08", "2026-09")
CURRENCIES = ("EUR", "JPY", "USD")
STRANGER = "999"
OBJECTS = ({"value": "5"}, ["x"], [{"a": 1}])


@dataclass(frozen=True)
class Odd:
    """A value that says nothing that its role may be."""

    sent: Any


ODD: dict[str, tuple[Any, ...]] = {
    "amount": ("five", True, "1,50", "5 EUR", "0x10", "1_000", "007", "9" * 40, "NaN", *OBJECTS),
    "quantity": ("one", "1,5", False, *OBJECTS),
    "month": (1790822400, "1790822400", 1790822400123, "09/30/2026", "soon", True, *OBJECTS),
    "currency": OBJECTS,
    "partner": OBJECTS,
    "status": OBJECTS,
    "kind": OBJECTS,
    "usage": OBJECTS,
    "lines": ("none", 7, {"usage": "1"}),
}


@dataclass
class Used:
    """A record of usage."""

    id: str
    partner: Any
    month: Any
    currency: Any
    quantity: Any
    amount: Any


@dataclass
class Line:
    """A line of a bill; without `usage`, it is a fee."""

    usage: Any
    quantity: Any
    amount: Any


@dataclass
class Bill:
    """A bill, or a credit note."""

    id: str
    partner: Any
    month: Any
    currency: Any
    total: Any
    lines: Any
    status: Any = "paid"
    kind: Any = "invoice"


@dataclass
class Books:
    """The usage and bills of one partner."""

    usage: list[Used] = field(default_factory=list)
    bills: list[Bill] = field(default_factory=list)

    def copied(self) -> "Books":
        bills = [replace(each, lines=[replace(line) for line in each.lines]) for each in self.bills]
        return Books([replace(each) for each in self.usage], bills)


def balanced(chance: Random, partner: str) -> Books:
    """Return the books of a partner in which usage and bills agree."""
    month, currency = chance.choice(MONTHS), chance.choice(CURRENCIES)
    books = Books()
    for at in range(chance.randint(2, 3)):
        amount = Decimal(chance.randint(1_000, 99_999)) / 100
        quantity = chance.randint(1, 9)
        books.usage.append(Used(f"{partner}{at}", partner, month, currency, quantity, amount))
    lines = [Line(each.id, each.quantity, each.amount) for each in books.usage]
    total = sum((each.amount for each in lines), Decimal(0))
    books.bills.append(Bill(f"b{partner}", partner, month, currency, total, lines))
    return books


def _other(chance: Random, values: tuple[str, ...], value: str) -> str:
    return chance.choice([each for each in values if each != value])


def _amount(books: Books, chance: Random) -> None:
    books.usage[0].amount += chance.choice([Decimal("0.01"), Decimal(-3), Decimal("7.5")])


def _line_amount(books: Books, chance: Random) -> None:
    more = chance.choice([Decimal("0.01"), Decimal(-3), Decimal("7.5")])
    books.bills[0].lines[0].amount += more
    books.bills[0].total += more


def _quantity(books: Books, _chance: Random) -> None:
    books.usage[0].quantity += 1


def _currency(books: Books, chance: Random) -> None:
    each: Any = chance.choice([books.usage[0], books.bills[0]])
    each.currency = chance.choice([None, _other(chance, CURRENCIES, each.currency)])


def _month(books: Books, chance: Random) -> None:
    each: Any = chance.choice([books.usage[0], books.bills[0]])
    each.month = _other(chance, MONTHS, each.month)


def _partner(books: Books, chance: Random) -> None:
    each: Any = chance.choice([books.usage[0], books.bills[0]])
    each.partner = chance.choice([STRANGER, "100"])


def _status(books: Books, chance: Random) -> None:
    books.bills[0].status = chance.choice(["void", "draft", "settled", None])


def _drop_line(books: Books, _chance: Random) -> None:
    bill = books.bills[0]
    bill.total -= bill.lines.pop().amount


def _drop_usage(books: Books, chance: Random) -> None:
    books.usage.pop(chance.randrange(len(books.usage)))


def _bill_again(books: Books, chance: Random) -> None:
    first = books.bills[0]
    line = replace(first.lines[0])
    kind = chance.choice(["invoice", "credit"])
    again = Bill(
        f"c{first.id}", first.partner, first.month, first.currency, line.amount, [line], kind=kind
    )
    books.bills.append(again)


def _other_usage(books: Books, _chance: Random) -> None:
    books.bills[0].lines[0].usage += "77"


def _fee(books: Books, chance: Random) -> None:
    books.bills[0].total += Decimal("2.5")
    if chance.random() < 0.5:
        books.bills[0].lines.append(Line(None, 1, Decimal("2.5")))


CHANGES: tuple[Callable[[Books, Random], None], ...] = (
    _amount, _line_amount, _quantity, _currency, _month, _partner, _status, _drop_line, _drop_usage,
    _bill_again, _other_usage, _fee,
)  # fmt: skip
PARTS = {  # where a value that says nothing may be; the partner of a record: anybody's
    "usage": ("amount", "quantity", "month", "currency"),
    "bill": ("total", "month", "currency", "status", "kind", "lines"),
    "line": ("usage", "quantity", "amount"),
}


def make_odd(books: Books, chance: Random, *, is_first: bool, any_partner: bool) -> None:
    """Replace one value by one that says nothing; `any_partner`: that of a partner.

    In a first scan, what is a list in some records only is text in all: no record has lines then.
    """
    bill = books.bills[0]
    where = {"usage": books.usage[0], "bill": bill, "line": bill.lines[0]}
    part = chance.choice([*PARTS])
    name = chance.choice([each for each in PARTS[part] if each != "lines" or not is_first])
    if any_partner:
        part, name = chance.choice(["usage", "bill"]), "partner"
    setattr(where[part], name, Odd(chance.choice(ODD["amount" if name == "total" else name])))


class Spelling:
    """Spells what records mean, each value in one of the ways that say the same."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._plain = chance.random() < 0.3  # as most services do, so that columns get types

    def used(self, each: Used) -> Record:
        return {
            "id": self._name(each.id),
            "partner": self._name(each.partner),
            "day": self._month(each.month),
            "quantity": self._number(each.quantity),
            "amount": self._number(each.amount),
            "currency": self._text(each.currency, str.lower),
            "recorded": "2026-07-01T00:00:00Z",
        }

    def bill(self, each: Bill) -> Record:
        lines = each.lines.sent if isinstance(each.lines, Odd) else [*map(self._line, each.lines)]
        return {
            "id": each.id,
            "partner": self._name(each.partner),
            "month": self._month(each.month),
            "total": self._number(each.total),
            "currency": self._text(each.currency, str.title),
            "issued": "2026-10-01T00:00:00Z",
            "status": self._text(each.status, str.upper),
            "kind": self._text(each.kind, str.title),
            "lines": lines,
        }

    def partner(self, name: str) -> Record:
        return {"id": self._name(name), "name": f"{name} Ltd", "externalId": f"x{name}"}

    def _line(self, each: Line) -> Record:
        return {
            "usage": self._name(each.usage),
            "quantity": self._number(each.quantity),
            "amount": self._number(each.amount),
        }

    def _choose(self, value: Any, usual: Any, *others: Any) -> Any:
        if isinstance(value, Odd) or value is None:
            return value.sent if value else None
        return usual if self._plain else self._chance.choice([usual, *others])

    def _number(self, value: Any) -> Any:
        if isinstance(value, Odd):
            return value.sent
        number = float(value) if value % 1 else int(value)
        cents = int(value * 100)
        return self._choose(
            value, f"{value:.2f}", number, f"{value}", f"{cents}e-2", f"{value:.4f}", float(value)
        )

    def _name(self, value: Any) -> Any:
        return self._choose(value, value, value if isinstance(value, Odd | None) else int(value))

    def _text(self, value: Any, change: Callable[[str], str]) -> Any:
        if isinstance(value, Odd) or value is None:
            return self._choose(value, None)
        return self._choose(value, value, change(value), f" {value}", f"{change(value)}\u00a0")

    def _month(self, value: Any) -> Any:
        """Spell a moment of a month, often its last hours in the time zone."""
        if isinstance(value, Odd):
            return value.sent
        day = datetime.fromisoformat(f"{value}-27T23:40:00").replace(tzinfo=ZONE)
        local = day + timedelta(days=self._chance.randrange(4))
        utc = local.astimezone(ZoneInfo("UTC"))
        return self._choose(
            value,
            f"{utc:%Y-%m-%dT%H:%M:%SZ}",
            value,
            f"{local:%Y-%m-%d}",
            f"{local:%Y-%m-%dT%H:%M:%S}-03:00",
            f"{local:%Y-%m-%dT%H:%M:%S}",
            f"{utc:%Y-%m-%d %H:%M:%S UTC}",
            f"{utc:%Y-%m-%d %H:%M:%S+00:00}",
            f"{utc:%Y-%m-%dT%H:%MZ}".lower(),
            f"{utc:%Y-%m-%dT%H:%M:%S.123456789Z}",
            f"{local:%Y-%m-%dT%H:%M:%S-0300}",
        )
