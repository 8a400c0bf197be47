"""Random books of four months that are closed one after the other, while their records change."""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from pipelines.app.nightly import build_with_books
from pipelines.finance.close import close_month, reopen_month
from tests.reconcile.books import bill, line, partners, publish, used
from tests.reconcile.months import ACCOUNTS, SERVICE, TERMS, signing
from tests.versions.homes import Record, Stores

MONTHS = ("2026-07", "2026-08", "2026-09", "2026-10")
PARTNERS = ("p1", "p2", "p3")
CURRENCIES = ("EUR", "JPY")
Key = tuple[str, str]  # partner, currency
ANY = {name: {"max_deleted_share": 1, "allow_empty": True} for name in ("usage", "billing")}


class AnyBooks:
    """Usage and bills; bills have a line for most usage of their partner, month and currency."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._number = 0
        self.usage = dict[str, Record]()
        self.bills = dict[str, Record]()
        for month in MONTHS:
            for partner in PARTNERS:
                self._add_month(month, partner)

    def change(self) -> None:
        """Change some records, in any month."""
        for _ in range(self._chance.randint(0, 4)):
            kind = self._chance.randrange(5)
            if kind == 0 and self.usage:
                record = self._chance.choice([*self.usage.values()])
                self.usage[record["id"]] = {**record, "amount": self._amount()}
            elif kind == 1 and self.usage:
                self.usage.pop(self._chance.choice([*self.usage]))
            elif kind == 2:
                self._add_month(self._chance.choice(MONTHS), self._chance.choice(PARTNERS))
            elif self.bills:
                record = self._chance.choice([*self.bills.values()])
                fields = {"status": "void"} if kind == 3 else {"month": self._day()}
                self.bills[record["id"]] = {**record, **fields}

    def unbilled(self, until: str) -> dict[Key, Decimal]:
        """Return what is unbilled of all months until one, as the records are now."""
        sums = defaultdict[Key, Decimal](Decimal)
        for record in self.usage.values():
            if record["day"][:7] <= until:
                sums[record["partner"], record["currency"]] += Decimal(record["amount"])
        for record in self.bills.values():
            if record["month"][:7] <= until and record["status"] == "paid":
                total = Decimal(record["total"])
                signed = -abs(total) if record["kind"] == "credit" else total
                sums[record["partner"], record["currency"]] -= signed
        return {key: amount for key, amount in sums.items() if amount}

    def _add_month(self, month: str, partner: str) -> None:
        """Add usage of a partner's month, and a bill or a credit note of it."""
        currency = self._chance.choice(CURRENCIES)
        lines = []
        for _ in range(self._chance.randint(1, 3)):
            self._number += 1
            name = f"u{self._number}"
            fields = {"partner": partner, "day": f"{month}-10", "currency": currency}
            record = used(name, self._amount(), **fields)
            self.usage[name] = record
            if self._chance.random() < 0.8:
                off = self._chance.choice(["0", "0", "0", "1.25", "-0.01"])
                lines.append(line(name, str(Decimal(record["amount"]) + Decimal(off))))
        if self._chance.random() < 0.3:
            lines.append(line(None, "2.50"))
        if lines:
            kind = "credit" if self._chance.random() < 0.2 else "invoice"
            fields = {"partner": partner, "month": f"{month}-01", "currency": currency}
            name = f"b{self._number}"
            self.bills[name] = bill(name, *lines, kind=kind, **fields)

    def _amount(self) -> str:
        return f"{self._chance.randint(-500, 50_000) / 100:.2f}"

    def _day(self) -> str:
        return f"{self._chance.choice(MONTHS)}-01"


Closed = tuple[Stores, AnyBooks, Path]
"""A home, what its records are now, and the copy that was written last."""


def closed_in_turn(folder: Path, seed: int, mapping: str = TERMS + ACCOUNTS) -> Iterator[Closed]:
    """Close the months of random books; yield the copy after each close, with the books as then.

    Some months are opened again and closed again.
    """
    chance = Random(seed)
    books = AnyBooks(chance)
    stores = Stores.open(folder / f"home{seed}", streams=ANY)
    stores.configure(**SERVICE)
    _publish(stores, books, mapping)
    months = [signing()[0].replace(month=int(month[-2:])) for month in MONTHS]
    for place, month in enumerate(months):
        _close(stores, books, month, mapping)
        yield stores, books, newest_copy(stores, MONTHS[place])
        if chance.random() < 0.4:
            again = chance.randrange(place + 1)
            reopen_month(stores, months[again], "cid", "a bill was wrong")
            build_with_books(stores)
            _close(stores, books, months[again], mapping)
            yield stores, books, newest_copy(stores, MONTHS[again])
    stores.metadata.close()


def newest_copy(stores: Stores, month: str) -> Path:
    return max((stores.home.closes / month).iterdir())


def _publish(stores: Stores, books: AnyBooks, mapping: str) -> None:
    lists: dict[str, Any] = {
        "partners": partners(PARTNERS),
        "usage": [*books.usage.values()],
        "billing": [*books.bills.values()],
    }
    publish(stores, mapping=mapping, **lists)


def _close(stores: Stores, books: AnyBooks, month: Any, mapping: str) -> None:
    books.change()
    _publish(stores, books, mapping)
    close_month(stores, *signing(month))
    build_with_books(stores)
