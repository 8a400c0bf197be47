"""An organization as the source of its seeded records: identifiers, choices, dates, amounts.

Here: pure functions of (seed, organization, kind, index). Not here: what a record contains.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

from sandbox.data.calendar import EPOCH
from sandbox.data.digest import ID_SIZE, Source, identifier, source
from sandbox.data.money import text

Choice = TypeVar("Choice")

CURRENCIES = ("EUR", "USD", "GBP")  # of merchants: two decimals, as bodies demand
DIGITS = 2


@dataclass(frozen=True)
class Draw:
    """The chance of one record: its identifier, and bytes to choose by."""

    id: str
    choices: bytes

    def of(self, options: Sequence[Choice], nth: int) -> Choice:
        """Choose by the nth byte."""
        return options[self.choices[nth] % len(options)]

    def number(self, nth: int) -> int:
        """Give the integer of the nth byte and the one after it, below 65,536."""
        return self.choices[nth] << 8 | self.choices[nth + 1]


class Office:
    """One organization; ``record`` is what the partner surface's list shows of it."""

    def __init__(self, seed: int, place: int, record: Any) -> None:
        self.seed = seed
        self.record = record
        self.id = str(record["organizationId"])
        self.currency = CURRENCIES[place % len(CURRENCIES)]
        self._sources: dict[str, Source] = {}

    def draw(self, kind: str, index: int) -> Draw:
        """Give the chance of the record of a kind at an index."""
        if kind not in self._sources:
            self._sources[kind] = source(self.seed, f"{self.id}/{kind}")
        digest = self._sources[kind](index)
        return Draw(identifier(digest), digest[ID_SIZE:])


def money(minor: int) -> str:
    """Write an amount of minor units."""
    return text(minor, DIGITS)


def minor(amount: str) -> int:
    """Read an amount of exactly two decimals."""
    return int(amount.replace(".", ""))


def moment(when: datetime) -> str:
    """Write a point in time, in UTC."""
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=4096)
def before_epoch(days: int, minutes: int = 0) -> datetime:
    """Give a point in time so long before the data's epoch; negative days lie after it."""
    return EPOCH - timedelta(days=days, minutes=minutes)
