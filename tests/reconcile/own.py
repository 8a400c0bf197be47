"""A home with own books: a ledger of bills, and a meter of usage, with an error of each kind."""

from pathlib import Path

from pipelines.core.files import write_durably
from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used
from tests.versions.homes import Stores

SECOND = "second"
LEDGER = """
[own.ledger]
against = "billing"
connection = "acme"
file = "ledger/*.csv"
[own.ledger.roles]
id = "Bill"
partner = "Partner"
period = "Posted on"
amount = "Amount"
currency = "Currency"
"""
METER = """
[own.meter]
against = "usage"
connection = "acme"
file = "meter.csv"
[own.meter.roles]
partner = "who"
period = "when"
amount = "value"
currency = "code"
"""
HEAD = "Bill,Partner,Posted on,Amount,Currency"
# b1 and b8 agree, b8 in two lines of the ledger.
SEPTEMBER = [
    "b1,first,2026-09-30,5.00,EUR",
    "b2,first,2026-09-30,7.25,eur",  # another amount
    "b3,second,2026-09-30,5.00,EUR",  # another partner
    "b4,first,2026-10,5.00,EUR",  # another month
    "b5,first,2026-09-30,5.00,USD",  # another currency
    "b6,first,2026-09-30,5.00,EUR",
    "b6,first,2026-09-30,5.00,EUR",  # twice
    "b8,first,2026-09-30,3.00,EUR",
    "b8,first,2026-09-30T10:00:00Z,2e0,EUR",
]
OCTOBER = [
    "unknown,first,2026-09-30,3.00,EUR",  # only in the ledger
    ",first,2026-09-30,1.50,EUR",  # without an identifier
    "v1,first,2026-09-30,5.00,EUR",  # of a void bill
]
METERED = ["who,when,value,code", "first,2026-09-10,30.00,EUR", "first,2026-09-11,10.00,EUR"]


def write(stores: Stores, name: str, lines: list[str]) -> Path:
    """Write a file of own books."""
    file = stores.home.root / name
    file.parent.mkdir(exist_ok=True)
    write_durably(file, ("\n".join(lines) + "\n").encode())
    return file


def publish_own(stores: Stores) -> None:
    """Publish eight bills of eight records of usage, a void one, and compare own books."""
    stores.configure()
    write(stores, "ledger/2026-09.csv", [HEAD, *SEPTEMBER])
    write(stores, "ledger/2026-10.csv", [HEAD, *OCTOBER])
    write(stores, "meter.csv", METERED)
    numbers = range(1, 9)
    usage = [used(f"u{number}") for number in numbers]
    billing = [bill(f"b{number}", line(f"u{number}")) for number in numbers]
    billing.append(bill("v1", line("u1"), status="void"))
    publish(
        stores,
        mapping=MAPPING + LEDGER + METER,
        partners=partners([FIRST, SECOND]),
        usage=usage,
        billing=billing,
    )
