"""Plans: what is metered and at which price. All their fields are assumed ("plans … not shown").

Here: the table of plans and their records. Not here: what a usage row makes of them (charge).
"""

import json
from dataclasses import dataclass

from sandbox.data.digest import identifier, source
from sandbox.data.money import price_lexeme


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: price in 10^-6 of a currency's unit, and the largest quantity of an ordinary row."""

    name: str
    metric: str
    price: int
    most: int


PLANS = (
    Plan("Starter", "api_calls", 12_500, 40_000),
    Plan("Growth", "api_calls", 9_750, 250_000),
    Plan("Scale", "api_calls", 350, 9_000_000),
    Plan("Invoices", "invoices_sent", 250_000, 4_000),
    Plan("Reminders", "emails_sent", 4_999, 30_000),
    Plan("Text messages", "sms_sent", 78_125, 6_000),
    Plan("Storage", "gigabyte_hours", 27, 65_000_000),
    Plan("Seats", "seats", 19_990_000, 60),
    Plan("Terminals", "terminals", 7_500_000, 40),
    Plan("Payouts", "payouts", 1_000_000, 900),
    Plan("Disputes", "disputes", 15_000_000, 12),
    Plan("Look-ups", "lookups", 333_333, 2_000),
    # One price unit is one minor unit of the currency: quantities and amounts of 18 digits.
    Plan("Settlement, two decimals", "minor_units_settled", 10_000, 0),
    Plan("Settlement, no decimals", "minor_units_settled", 1_000_000, 0),
    Plan("Settlement, three decimals", "minor_units_settled", 1_000, 0),
)
ORDINARY_PLANS = 12
SETTLEMENT_PLAN = {2: 12, 0: 13, 3: 14}  # by the digits of the currency's minor unit


def plan_ids(seed: int) -> tuple[str, ...]:
    """Give the identifier of each plan."""
    chance = source(seed, "plans")
    return tuple(identifier(chance(index)) for index in range(len(PLANS)))


def plan_records(seed: int) -> list[bytes]:
    """Give the plan list as JSON records; a description is a text, null, or missing."""
    descriptions = (',"description":"per unit, taxes included"', ',"description":null', "")
    return [
        (
            f'{{"planId":"{plan_id}","name":{json.dumps(plan.name)},"metric":"{plan.metric}"'
            f',"unitPrice":{price_lexeme(plan.price)}'
            f',"active":{json.dumps(index != ORDINARY_PLANS - 1)}'
            f',"createdAt":"2024-{index % 12 + 1:02d}-15T09:00:00Z"{descriptions[index % 3]}}}'
        ).encode()
        for index, (plan_id, plan) in enumerate(zip(plan_ids(seed), PLANS, strict=True))
    ]
