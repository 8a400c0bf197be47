"""A home with usage of September, October and November, and how a month of it is signed off."""

from datetime import date

from pipelines.app.close import Signing
from tests.publish.homes import Stores
from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used

SEPTEMBER, OCTOBER = date(2026, 9, 1), date(2026, 10, 1)
# October with its grace ends after the partners were read, and before usage was.
TERMS = f"grace_days = 2\n{MAPPING}"
USAGE = [
    used("u"),
    used("w", "7.00", currency="USD"),
    used("late", "1.00", day="2026-10-05"),
    used("now", "1.00", day="2026-11-01"),
]
BILLS = [bill("b", line("u", "5.01"))]
SERVICE = {  # whose lists are expected
    "surface": "partner",
    "base_url": "http://127.0.0.1",
    "auth_url": "http://127.0.0.1",
    "audience": "a",
    "client_id": "c",
    "secret": "ACME_SECRET",
}


def signing(month: date = SEPTEMBER, preparer: str = "ann", reviewer: str = "bob") -> Signing:
    return Signing(month, preparer, reviewer, "as agreed")


def publish_months(stores: Stores) -> None:
    stores.configure(**SERVICE)
    publish(stores, mapping=TERMS, partners=partners([FIRST]), usage=USAGE, billing=BILLS)
