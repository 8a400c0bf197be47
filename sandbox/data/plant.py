"""Planted errors: what reconciliation must find, with known kinds, records and amounts.

Here: which records are wrong and how they are written wrongly; the truth about them. Not here: the
records as they are right (usage, billing). Groups of the epoch alone are planted, months whose
bills were long issued, currencies of two decimals; a planted group is never restated, so that the
truth is the same every night.
"""

import random
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from typing import Any

from sandbox.data.billing import Billed, Fee, amounts, credited
from sandbox.data.charge import Charge, charges
from sandbox.data.digest import identifier, source
from sandbox.data.extra import CREDIT_NOTE, VOID, Extras
from sandbox.data.group import Group, Groups, Payer, groups_of
from sandbox.data.money import text
from sandbox.data.sizes import Sizes

COUNTS = {
    "amount_off": 5,  # one line of a bill, and its total, 0.01 above the usage row
    "missing_bill": 3,  # usage without its bill
    "double_bill": 2,  # a second bill with other numbers and the same lines
    "orphan_usage": 4,  # a usage row of a partner that is not in the list
    "orphan_billing": 2,  # a bill of a partner that is not in the list
    "late_usage": 6,  # a usage row recorded after its month was billed, on no bill
    "restated_after_bill": 4,  # a usage row that grew after its bill, which shows the old amount
    "void_bill": 3,  # a void copy of a bill: no error, it must not be counted
    "credit_note": 3,  # one for what a bill charges too much: no error if both are counted
    "price_change": 4,  # usage and bill at twice the price: no error, another price than before
    "fee_line": 2,  # a line of 1,000,000.00 on a bill, which names no usage
    "total_off": 3,  # a total that is 12.34 above the lines of the bill
    "accepted_fee": 3,  # a line for support, which names no usage: no error if a mapping accepts it
}
FEES = {
    "fee_line": Fee("Advisory services", 100_000_000),
    "total_off": Fee("", 1_234),
    "accepted_fee": Fee("Support", 2_500),
}
EXTRA_KINDS = {"void_bill": VOID, "credit_note": CREDIT_NOTE}
MORE_BILLS = {"double_bill", *EXTRA_KINDS}  # a second bill follows the group's
ROW_KINDS = {"amount_off", "orphan_usage", "late_usage", "restated_after_bill"}
PRICE_FACTOR = 2  # of a price change
TRIES = 50  # for each error, to find a group that it can be planted in
LATER = timedelta(days=3)  # after the bill, which is issued on the month's last day
LAST_MONTH = "2026-09-30"  # of those planted: what comes later than its bill is still history
FIRST_COPY = 90_000_000  # the invoice numbers of second bills begin here
RECORDED = re.compile(rb'("(?:recordedAt|updatedAt)":")[^"]*')

UsageRecord = Callable[[int, Group], bytes]


@dataclass(frozen=True)
class PlantedError:
    """One error: ``amount`` is what it is about, ``difference`` billed minus owed by all partners.

    Both are texts of exact decimals in ``currency``. ``other_id`` is the identifier that was made
    up: of the second or void bill, of the credit note, or of the unknown partner.
    """

    kind: str
    partner_id: str
    currency: str
    month: str
    amount: str
    difference: str
    usage_id: str | None
    billing_id: str
    other_id: str | None = None


@dataclass(frozen=True)
class Plant:
    """The errors, and by group and by usage row what is written wrongly."""

    seed: int
    errors: tuple[PlantedError, ...]
    kinds: dict[int, str]
    rows: dict[int, str]

    def report(self) -> dict[str, Any]:
        """Give the truth as JSON."""
        planted = [error.kind for error in self.errors]
        counts = {kind: planted.count(kind) for kind in COUNTS}
        return {"counts": counts, "errors": [asdict(error) for error in self.errors]}

    def calm(self, groups: Groups) -> Groups:
        """Keep planted groups from being restated."""
        if not self.kinds:
            return groups

        def at(index: int) -> Group:
            group = groups.at(index)
            return _planted(group, self.kinds.get(index, ""))

        return Groups(at, lambda row: at(groups.of_row(row).index))

    def billed(self, groups: Groups) -> Groups:
        """Let the bills of some groups be those of a stranger."""

        def at(index: int) -> Group:
            group = groups.at(index)
            return self._strange(group) if self.kinds.get(index) == "orphan_billing" else group

        return Groups(at, groups.of_row) if self.kinds else groups

    def usage(self, record: UsageRecord) -> UsageRecord:
        """Give the writer of usage rows that writes planted ones wrongly."""

        def planted(index: int, group: Group) -> bytes:
            kind = self.rows.get(index)
            if kind == "orphan_usage":
                return record(index, self._strange(group))
            if kind == "restated_after_bill":
                return record(index, replace(group, version=1, updated=_later(group)))
            if kind == "late_usage":
                moment = f"{_later(group)}T09:30:00Z".encode()
                return RECORDED.sub(lambda found: found[1] + moment, record(index, group))
            return record(index, group)

        return planted if self.rows else record

    def charged(self, group: Group, lines: list[Charge]) -> Billed:
        """Give what a bill charges, wrongly where planted."""
        kind_of_group = self.kinds.get(group.index, "")
        if kind_of_group in FEES:
            return Billed(lines, [FEES[kind_of_group]])
        if not self.rows:
            return Billed(lines)
        return Billed(
            [
                line._replace(minor=line.minor + (kind == "amount_off"))
                for row, line in zip(group.rows, lines, strict=True)
                if (kind := self.rows.get(row)) != "late_usage"
            ]
        )

    @property
    def bills(self) -> int:
        """How many bills there are more than groups."""
        kinds = list(self.kinds.values())
        return sum(kind in MORE_BILLS for kind in kinds) - kinds.count("missing_bill")

    def extra_of(self, group: int) -> str:
        """Give the kind of the extra bill that is planted in a group, empty if there is none."""
        return EXTRA_KINDS.get(self.kinds.get(group, ""), "")

    def billing(
        self, record: Callable[[int, str], bytes], extras: Extras
    ) -> Callable[[int], bytes]:
        """Give the writer from a bill's place in the list, with some missing and some twice."""
        events = sorted(
            g for g, kind in self.kinds.items() if kind == "missing_bill" or kind in MORE_BILLS
        )

        def planted(place: int) -> bytes:
            shift = 0  # so many more bills than without planted errors are before the place
            for group in events:
                at, more = extras.count(group) + shift, self.kinds[group] in MORE_BILLS
                if place < at + more:
                    break
                if more and place == at + 1:
                    return self._second(group, record)
                shift += 1 if more else -1
            return record(*extras.at(place - shift))

        return planted

    def _strange(self, group: Group) -> Group:
        stranger = identifier(source(self.seed, "strangers")(group.index))
        payer: Payer = replace(group.payer, partner_id=stranger)
        return replace(group, payer=payer)

    def _second(self, group: int, record: Callable[[int, str], bytes]) -> bytes:
        bill = record(group, self.extra_of(group))
        if self.extra_of(group):
            return bill
        bill = bill.replace(
            _bill_id(self.seed, group).encode(), _copy_id(self.seed, group).encode()
        )
        return bill.replace(b'"%08d"' % (group + 1), b'"%08d"' % (FIRST_COPY + group + 1), 1)


NOTHING = Plant(0, (), {}, {})


def plant(seed: int, sizes: Sizes, *, awkward: bool = False) -> Plant:
    """Plant errors; fewer than ``COUNTS`` where the data have too few groups for them."""
    kinds: dict[int, str] = {}
    rows: dict[int, str] = {}
    groups, extras = groups_of(seed, sizes), Extras(awkward)
    chance = random.Random(f"{seed}/plant")  # noqa: S311 - repeatable on purpose, guards nothing
    wanted = [kind for kind, count in COUNTS.items() for _ in range(count)]
    for kind in wanted if sizes.billing else ():
        for _ in range(TRIES):
            group = groups.at(chance.randrange(sizes.base.groups))
            free = group.index not in kinds and not extras.of(group.index)
            if free and _plantable(group):
                kinds[group.index] = kind
                rows |= {chance.choice(group.rows): kind} if kind in ROW_KINDS else {}
                break
    errors = _truth(seed, groups, kinds, rows, charges(seed, awkward=awkward))
    return Plant(seed, tuple(errors), kinds, rows)


def _planted(group: Group, kind: str) -> Group:
    """Give a group as it is with a kind of error: never restated; empty: as it is."""
    if not kind:
        return group
    factor = PRICE_FACTOR if kind == "price_change" else 1
    return replace(group, version=0, updated="", price_factor=factor)


def _plantable(group: Group) -> bool:
    return (
        len(group.rows) > 1
        and group.payer.currency.digits == 2  # noqa: PLR2004 - an error of 0.01
        and group.month.last <= LAST_MONTH
    )


def _truth(
    seed: int,
    groups: Groups,
    kinds: dict[int, str],
    rows: dict[int, str],
    charge_of: Callable[[int, Group], Charge],
) -> list[PlantedError]:
    row_of = {groups.of_row(row).index: row for row in rows}
    errors = []
    for index, kind in kinds.items():
        group = replace(groups.at(index), version=0, updated="")
        row = row_of.get(index)
        if kind in FEES:
            amount = FEES[kind].minor
        elif kind == "credit_note":
            row = group.rows[0]
            (line,) = credited([charge_of(row, group)], group.payer.currency)
            amount = line.minor
        elif row is None:
            amount = amounts([charge_of(one, group) for one in group.rows]).total
        else:
            amount = charge_of(row, group).minor
        if kind == "amount_off":
            amount = 1
        if kind == "price_change":
            dear = _planted(group, kind)
            amount = amounts([charge_of(one, dear) for one in group.rows]).total - amount
        if kind == "restated_after_bill" and row is not None:
            amount = charge_of(row, replace(group, version=1)).minor - amount
        errors.append(
            PlantedError(
                kind=kind,
                partner_id=group.payer.partner_id,
                currency=group.payer.currency.code,
                month=group.month.first,
                amount=text(amount, group.payer.currency.digits),
                difference=text(_sign(kind) * amount, group.payer.currency.digits),
                usage_id=None if row is None else identifier(source(seed, "usage")(row)),
                billing_id=_bill_id(seed, index),
                other_id=_other_id(seed, kind, index),
            )
        )
    return errors


def _sign(kind: str) -> int:
    if kind.startswith("orphan") or kind in EXTRA_KINDS or kind == "price_change":
        return 0
    return 1 if kind in ("amount_off", "double_bill", *FEES) else -1


def _other_id(seed: int, kind: str, group: int) -> str | None:
    if kind == "double_bill":
        return _copy_id(seed, group)
    if kind in EXTRA_KINDS:
        return identifier(source(seed, "extras")(group))
    return identifier(source(seed, "strangers")(group)) if kind.startswith("orphan") else None


def _bill_id(seed: int, group: int) -> str:
    return identifier(source(seed, "billing")(group))


def _copy_id(seed: int, group: int) -> str:
    return identifier(source(seed, "copies")(group))


def _later(group: Group) -> str:
    return (date.fromisoformat(group.month.last) + LATER).isoformat()
