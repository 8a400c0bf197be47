"""Billing records: each covers one group of usage rows. All fields are assumed ("… not shown").

Here: one record with a line for each usage row; prices include tax, so the lines add up to the
total and subtotal + tax is the total, exactly. Not here: the lines' money (charge).
"""

from collections.abc import Callable
from typing import NamedTuple

from sandbox.data.charge import PRICES, Charge, charges
from sandbox.data.digest import ID_SIZE, identifier, source
from sandbox.data.group import Group, Groups
from sandbox.data.money import half_even, text
from sandbox.data.plan import PLANS

TAX_PERCENT = 19
STATUSES = ("paid", "paid", "paid", "open", "overdue")
CREDIT_REASONS = ("goodwill", "service_level", "duplicate_payment")


class Amounts(NamedTuple):
    """A record's money in minor units; the tax is included in the total."""

    subtotal: int
    tax: int
    total: int


def amounts(lines: list[Charge]) -> Amounts:
    """Add up the lines and take out the tax that they include."""
    total = sum(line.minor for line in lines)
    tax = half_even(total * TAX_PERCENT, 100 + TAX_PERCENT)
    return Amounts(total - tax, tax, total)


def billing_record(
    seed: int, groups: Groups, billed: Callable[[Group, list[Charge]], list[Charge]]
) -> Callable[[int], bytes]:
    """Give the function from a group's index to its billing record as JSON.

    ``billed`` gives the lines of a bill, of the charges that belong on it.
    """
    charge_of, chance = charges(seed), source(seed, "billing")

    def record(index: int) -> bytes:
        group = groups.at(index)
        digits, month = group.payer.currency.digits, group.month
        lines = billed(group, [charge_of(row, group) for row in group.rows])
        subtotal, tax, total = (text(minor, digits) for minor in amounts(lines))
        digest = chance(index)
        choice = digest[ID_SIZE:]
        issued = f"{month.prefix}{group.day:02d}" if group.day else month.last
        issued = f"{issued}T22:{choice[0] % 60:02d}:00Z"
        updated = f"{group.updated}T23:45:00Z" if group.version else issued
        return (
            f'{{"billingId":"{identifier(digest)}","partnerId":"{group.payer.partner_id}"'
            f',"invoiceNumber":"{index + 1:08d}"'
            f',"period":{{"start":"{month.first}","end":"{month.last}"}}'
            f',"currency":"{group.payer.currency.code}","issuedAt":"{issued}","dueAt":"{month.due}"'
            f',"subtotal":{subtotal},"tax":"{tax}","total":"{total}"'
            f',"status":"{STATUSES[choice[1] % 5]}"'
            f',"lines":[{",".join(_line(line, digits) for line in lines)}]{_credit(choice, digits)}'
            f',"revision":{group.version + 1},"updatedAt":"{updated}"}}'
        ).encode()

    return record


def _line(line: Charge, digits: int) -> str:
    plan = PLANS[line.plan]
    return (
        f'{{"usageId":"{identifier(line.digest)}","quantity":{line.quantity}'
        f',"unitPrice":{PRICES[line.plan]},"amount":"{text(line.minor, digits)}"'
        f',"description":"{plan.name}"}}'
    )


def _credit(choice: bytes, digits: int) -> str:
    # Granted towards the next period: no part of this record's total.
    kind = choice[2] % 10
    if kind:
        return ',"credit":null' if kind % 2 else ""
    reason = CREDIT_REASONS[choice[3] % len(CREDIT_REASONS)]
    amount = text((choice[4] + 1) * 10**digits, digits)
    return f',"credit":{{"reason":"{reason}","amount":"{amount}","appliesTo":"next_period"}}'
