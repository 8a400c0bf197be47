"""Small books with a difference of every kind, and partners whose names are not harmless."""

from typing import Final

from tests.reconcile.books import FIRST, MAPPING, bill, line, publish, used
from tests.reconcile.months import SERVICE
from tests.versions.homes import Record, Stores

HUGE: Final = "123456789012345678901234567.89"  # more digits than Excel keeps
FORMULA: Final = '=HYPERLINK("http://evil","x")'
SCRIPT: Final = "<script>alert(1)</script>"
FEES: Final = """
[accepted_fees.postage]
field = "kind"
values = ["postage"]
"""
TERMS: Final = MAPPING.replace('[billing]\nid = "id"', '[billing]\nid = "id"\nnumber = "number"')
PARTNERS: Final[list[Record]] = [
    {"id": FIRST, "name": "First Ltd", "externalId": "x"},
    {"id": "second", "name": SCRIPT, "externalId": "x"},
    {"id": "a/b", "name": FORMULA, "externalId": "x"},
    {"id": "a_b", "name": "Twin", "externalId": "x"},
    {"id": "A_b", "name": "Twin", "externalId": "x"},
    {"id": "../../up", "name": "+1 @up", "externalId": "x"},
]
USAGE: Final[list[Record]] = [
    used("u1", "10.25"),
    used("u2", "7.10", quantity=2),
    used("u3", "4.40"),
    used("u4", "3.00"),
    used("=1+1", "2.00", partner="a/b"),
    used("s1", HUGE, partner="second"),
    used("j1", "700", currency="JPY"),
    used("t1", "1.00", partner="a_b"),
    used("t2", "1.00", partner="A_b"),
    used("up", "1.00", partner="../../up"),
    used("oct", "5.00", day="2026-10-05"),
]
BILLS: Final[list[Record]] = [
    bill("b1", line("u1", "10.25"), number="INV-1"),
    bill("b2", line("u2", "9.10", 2), number="INV-2"),
    bill("b3", line("u3", "98.76"), partner="second", number="INV-SECRET"),
    bill("b4", line("u1", "10.25"), number="INV-4", issued="2026-10-03T10:00:00Z"),
    bill("b5", line("gone", "9.99"), number="INV-5"),
    bill("b6", line(None, "1.50"), number="POSTAGE", status="paid", kind="postage"),
    bill("c1", line(None, "0.50"), number="CREDIT", kind="credit"),
    bill("b7", line("j1", "700"), number="INV-7", currency="JPY"),
]


def publish_statements(stores: Stores) -> None:
    """Publish books of September, which is over, and of October, which is not."""
    stores.configure(**SERVICE)
    publish(stores, mapping=TERMS + FEES, partners=PARTNERS, usage=USAGE, billing=BILLS)
