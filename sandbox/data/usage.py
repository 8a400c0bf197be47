"""Usage rows, about 500 bytes each. All their fields are assumed ("usage … not shown").

Here: one row as JSON bytes: prices as numbers and amounts as texts, five UTC offsets, nested
objects, arrays of objects, null and missing keys. Awkward rows also have integers above 2^53, fees
of many decimals, and notes in several scripts.
Not here: its money (charge), what it shares with its neighbours (group).
"""

from collections.abc import Callable

from sandbox.data.charge import Charge, charges, price_of
from sandbox.data.digest import ID_SIZE
from sandbox.data.group import Group, Groups
from sandbox.data.money import text
from sandbox.data.plan import PLANS, plan_ids
from sandbox.data.scripts import NOTES

OFFSETS = ("Z", "+01:00", "-05:00", "+05:30", "+09:00")
FIRST_HOUR, HOURS = 10, 7  # local hours in which all five offsets and UTC agree on the day
DAYS = 28
FIRST_SEQUENCE = 2**53 + 1  # steps of two stay odd: no binary double holds any of them
EVENT_COUNTS = (0, 0, 0, 0, 1, 1, 2, 3)
EVENT_KINDS = ("peak", "overage", "retry", "refund", "burst")
EVENT_FEES = ("0.05", "0.125", "1.1", "0.3333", "12", "0.007")
ORDINARY_FEES = ("0.05", "0.15", "1.1", "0.3", "12", "0.01")
# Looked up rather than formatted: a row takes 5 µs, and a page has 500 of them.
TWO_DIGITS = tuple(f"{number:02d}" for number in range(60))
FRACTIONS = tuple(f"{number * 3921:06d}" for number in range(256))
NO_NOTES = (*(4 * [',"note":null']), *(6 * [""]))
NOTE_PARTS = (*(f',"note":{note}' for note in NOTES), *NO_NOTES)
ORDINARY_NOTES = ("checked by hand", "meter replaced", "agreed by telephone", "estimated", "final")
ORDINARY_NOTE_PARTS = (*(2 * [f',"note":"{note}"' for note in ORDINARY_NOTES]), *NO_NOTES)


def usage_record(seed: int, *, awkward: bool = False) -> Callable[[int, Group], bytes]:
    """Give the function from an index and its group to the usage row as JSON."""
    charge_of = charges(seed, awkward=awkward)
    first, step = (FIRST_SEQUENCE, 2) if awkward else (1, 1)
    notes, fees = (NOTE_PARTS, EVENT_FEES) if awkward else (ORDINARY_NOTE_PARTS, ORDINARY_FEES)
    plans = tuple(
        f'","planId":"{plan_id}","metric":"{plan.metric}","quantity":'
        for plan_id, plan in zip(plan_ids(seed), PLANS, strict=True)
    )

    def record(index: int, group: Group) -> bytes:
        payer = group.payer
        charge = charge_of(index, group)
        digest, plan, quantity, minor, _factor = charge
        offset = OFFSETS[digest[16] % 5]
        day = f"{group.month.prefix}{TWO_DIGITS[group.day or digest[17] % DAYS + 1]}T"
        hour = FIRST_HOUR + digest[18] % HOURS
        end = f"{day}{hour + 1}:"
        recorded = f"{end}{TWO_DIGITS[digest[19] % 60]}:07.{FRACTIONS[digest[20]]}{offset}"
        updated = f"{group.updated}T23:45:00Z" if group.version else recorded
        events = _events(charge, day, offset, fees) if EVENT_COUNTS[digest[22] % 8] else ""
        return (
            f'{{"usageId":"{digest[:ID_SIZE].hex()}","partnerId":"{payer.partner_id}'
            f'","organizationId":"{payer.organization_ids[digest[21] % 3]}{plans[plan]}'
            f'{quantity},"unitPrice":{price_of(charge)}'
            f',"amount":"{text(minor, payer.currency.digits)}","currency":"{payer.currency.code}'
            f'","period":{{"start":"{day}{hour}:00:00{offset}"'
            f',"end":"{end}00:00{offset}"}}'
            f',"recordedAt":"{recorded}","updatedAt":"{updated}"'
            f',"sequence":{first + step * index},"reference":"{index:010d}"'
            f',"events":[{events}]'
            f'{notes[digest[23] % 20]},"revision":{group.version + 1}}}'
        ).encode()

    return record


def _events(charge: Charge, day: str, offset: str, fees: tuple[str, ...]) -> str:
    digest = charge.digest
    return ",".join(
        f'{{"kind":"{EVENT_KINDS[digest[nth] % 5]}"'
        f',"at":"{day}1{nth}:{TWO_DIGITS[digest[nth + 3] % 60]}:00{offset}"'
        f',"units":{digest[nth + 6] + 1},"fee":{fees[digest[nth + 9] % 6]}}}'
        for nth in range(EVENT_COUNTS[digest[22] % 8])
    )


def usage_block(
    groups: Groups, record: Callable[[int, Group], bytes]
) -> Callable[[int, int], list[bytes]]:
    """Give the function that writes the usage rows [start, stop), group after group."""

    def block(start: int, stop: int) -> list[bytes]:
        written: list[bytes] = []
        while (index := start + len(written)) < stop:
            group = groups.of_row(index)
            rows = range(index, min(stop, group.rows.stop))
            written += [record(row, group) for row in rows]
        return written

    return block
