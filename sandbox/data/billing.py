"""Billing records: each covers one group of usage rows. All fields are assumed ("… not shown").

Here: one record with a line for each usage row; prices include tax, so the lines add up to the
total and subtotal + tax is the total, exactly. A group may have an extra bill: a copy that does not
count, or a credit note for what its bill charges too much. Not here: the lines' money (charge),
which groups have an extra bill (extra).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sandbox.data.charge import Charge, charges, overcharged, price_of
from sandbox.data.digest import ID_SIZE, identifier, source
from sandbox.data.extra import CREDIT_NOTE
from sandbox.data.group import Group, Groups
from sandbox.data.money import Currency, half_even, text
from sandbox.data.plan import PLANS

TAX_PERCENT = 19
STATUSES = ("paid", "paid", "paid", "issued", "issued")
AWKWARD_STATUSES = ("paid", "paid", "paid", "open", "overdue")
HOURS = {"": 22, CREDIT_NOTE: 23}  # of issue; other extra bills are an hour before their group's
FIRST_EXTRA = 80_000_000  # the invoice numbers of extra bills begin here
CREDIT_REASONS = ("goodwill", "service_level", "duplicate_payment")


class Amounts(NamedTuple):
    """A record's money in minor units; the tax is included in the total."""

    subtotal: int
    tax: int
    total: int


class Fee(NamedTuple):
    """A charge that names no usage, in minor units.

    Without a description, it is in the total and on no line.
    """

    description: str
    minor: int


class Billed(NamedTuple):
    """What a bill charges: usage, one line each, and fees."""

    lines: list[Charge]
    fees: Sequence[Fee] = ()


def amounts(lines: Iterable[Charge | Fee]) -> Amounts:
    """Add up the lines and take out the tax that they include."""
    total = sum(line.minor for line in lines)
    tax = half_even(total * TAX_PERCENT, 100 + TAX_PERCENT)
    return Amounts(total - tax, tax, total)


def credited(lines: list[Charge], currency: Currency) -> list[Charge]:
    """Give the line of a credit note: what the bill's first line is too much."""
    return [
        line._replace(quantity=line.quantity - more.quantity, minor=line.minor - more.minor)
        for line, more in ((line, overcharged(line, currency)) for line in lines[:1])
    ]


def billing_record(
    seed: int,
    groups: Groups,
    billed: Callable[[Group, list[Charge]], Billed],
    extra_of: Callable[[int], str],
    *,
    awkward: bool = False,
) -> Callable[[int, str], bytes]:
    """Give the function from a group's index and a kind to a billing record of it as JSON.

    The kind is empty for the group's bill, or that of an extra bill. ``billed`` gives what
    a bill charges, of the charges that belong on it. ``extra_of`` gives the kind of a group's extra
    bill.
    """
    charge_of, chance = charges(seed, awkward=awkward), source(seed, "billing")
    extra_chance, statuses = source(seed, "extras"), AWKWARD_STATUSES if awkward else STATUSES

    def billed_of(group: Group, extra: str) -> Billed:
        currency = group.payer.currency
        found = billed(group, [charge_of(row, group) for row in group.rows])
        if extra == CREDIT_NOTE:
            return Billed(credited(found.lines, currency))
        if extra_of(group.index) == CREDIT_NOTE:
            first = [overcharged(line, currency) for line in found.lines[:1]]
            return found._replace(lines=[*first, *found.lines[1:]])
        return found

    def state(extra: str, choice: int) -> str:
        kind = extra if extra == CREDIT_NOTE else "invoice"
        status = statuses[choice % 5] if extra in ("", CREDIT_NOTE) else extra
        # The bills of awkward data have no kind.
        return f'"status":"{status}"' + (f',"kind":"{kind}"' if extra or not awkward else "")

    def record(index: int, extra: str) -> bytes:
        group = groups.at(index)
        digits, month = group.payer.currency.digits, group.month
        found = billed_of(group, extra)
        charged = amounts([*found.lines, *found.fees])
        subtotal, tax, total = (text(minor, digits) for minor in charged)
        lines = [_line(line, digits) for line in found.lines]
        lines += [_fee_line(fee, digits) for fee in found.fees if fee.description]
        digest = extra_chance(index) if extra else chance(index)
        choice, number = digest[ID_SIZE:], index + 1 + (FIRST_EXTRA if extra else 0)
        issued = f"{month.prefix}{group.day:02d}" if group.day else month.last
        issued = f"{issued}T{HOURS.get(extra, 21)}:{choice[0] % 60:02d}:00Z"
        updated = f"{group.updated}T23:45:00Z" if group.version else issued
        return (
            f'{{"billingId":"{identifier(digest)}","partnerId":"{group.payer.partner_id}"'
            f',"invoiceNumber":"{number:08d}"'
            f',"period":{{"start":"{month.first}","end":"{month.last}"}}'
            f',"currency":"{group.payer.currency.code}","issuedAt":"{issued}","dueAt":"{month.due}"'
            f',"subtotal":{subtotal},"tax":"{tax}","total":"{total}"'
            f",{state(extra, choice[1])}"
            f',"lines":[{",".join(lines)}]{_credit(choice, digits)}'
            f',"revision":{group.version + 1},"updatedAt":"{updated}"}}'
        ).encode()

    return record


def _line(line: Charge, digits: int) -> str:
    plan = PLANS[line.plan]
    return (
        f'{{"usageId":"{identifier(line.digest)}","quantity":{line.quantity}'
        f',"unitPrice":{price_of(line)},"amount":"{text(line.minor, digits)}"'
        f',"description":"{plan.name}"}}'
    )


def _fee_line(fee: Fee, digits: int) -> str:
    amount = text(fee.minor, digits)
    return (
        f'{{"usageId":null,"quantity":1,"unitPrice":{amount},"amount":"{amount}"'
        f',"description":"{fee.description}"}}'
    )


def _credit(choice: bytes, digits: int) -> str:
    # Granted towards the next period: no part of this record's total.
    kind = choice[2] % 10
    if kind:
        return ',"credit":null' if kind % 2 else ""
    reason = CREDIT_REASONS[choice[3] % len(CREDIT_REASONS)]
    amount = text((choice[4] + 1) * 10**digits, digits)
    return f',"credit":{{"reason":"{reason}","amount":"{amount}","appliesTo":"next_period"}}'
