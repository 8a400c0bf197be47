"""Books with breaks in two currencies, of partners with names that a terminal must not get."""

from tests.reconcile.books import FIRST, MAPPING, bill, line, publish, used
from tests.versions.homes import DAY, Record, Stores, home_of

EVIL = "Evil\x1b[2J\u202e Ltd"
ESCAPED = r"Evil\x1b[2J\u202e Ltd"
MANY_DIGITS = "12345678901234567890.123456"
ACCEPTING = f"""{MAPPING}
[materiality]
EUR = 5
JPY = 100
[accepted_fees.small.up_to]
EUR = 10
"""
BREAKS = ["long", "w", "y", "first|2026-09-01|EUR|missing on the bill", "u"]
"""Subjects, most severe first; the one that is not on a bill is uncertain."""
USAGE = [
    used("u"),
    used("v", "2.00"),
    used("w", "700", partner="jp", currency="JPY"),
    used("x", "1.00"),
    used("y", "3.00"),
    used("long", "0.5", partner="jp"),
]
BILLS = [
    bill("b", line("u", "5.01"), line("v", "2.00"), line(None, "9.00"), total="17.01"),
    bill("c", line("y", "3.00")),
    bill("note", line("y", "1.00", 0), kind="credit"),
    bill("void", line("x"), status="void"),
    bill("j", line("w", "900"), partner="jp", currency="JPY"),
    bill("k", line("long", MANY_DIGITS), partner="jp"),
]


def publish_books(stores: Stores) -> None:
    """Publish the books; the list of bills is not proven complete."""
    stores.configure()
    names = {FIRST: EVIL, "jp": "Nippon"}
    known: list[Record] = [
        {"id": key, "name": name, "externalId": key} for key, name in names.items()
    ]
    publish(stores, mapping=ACCEPTING, partners=known, usage=USAGE)
    publish(stores, mapping=ACCEPTING, complete=False, billing=BILLS)
    stores.clock.now += DAY


books = home_of(publish_books)  # breaks of two partners in two currencies, one of them uncertain
