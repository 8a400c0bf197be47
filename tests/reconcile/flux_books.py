"""Books of two months, read thrice: when history begins, after their grace days, and now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from pipelines.app.nightly import build_with_books
from pipelines.core.files import write_durably
from tests.reconcile.books import MAPPING, partners
from tests.versions.homes import Reading, Record, Stores, read

ROLES = ("plan", "metric", "unit", "region", "organization")
AUGUST, SEPTEMBER = "2026-08", "2026-09"
MONTHS = date(2026, 8, 1), date(2026, 9, 1)
# Any share of the rows may be gone.
ANY: Any = {"max_deleted_share": 1, "allow_empty": True}
ANY_LISTS = {"partners": ANY, "usage": ANY, "billing": ANY}
BEGIN = datetime(2026, 8, 1, 2, tzinfo=UTC)
THEN = datetime(2026, 10, 3, 2, tzinfo=UTC)
NOW = datetime(2026, 10, 20, 2, tzinfo=UTC)


def with_roles(usage: Sequence[str] = ROLES, lines: Sequence[str] = ()) -> str:
    """Return the mapping with more roles, whose fields have their names."""
    of_usage = "".join(f'{role} = "{role}"\n' for role in usage)
    of_lines = "".join(f'line_{role} = "lines[].{role}"\n' for role in lines)
    return MAPPING.replace("[billing]\n", f"{of_usage}[billing]\n") + of_lines


@dataclass(frozen=True)
class Row:
    """A record of usage, and the line that bills it, each on a bill of its own.

    Without a `plan`, the line names no usage, and there is none: it is a fee. With `credit`, the
    bill is a credit note.
    """

    id: str
    amount: str
    quantity: int | str | None = 10
    month: str = SEPTEMBER
    plan: str | None = "pro"
    partner: str = "first"
    currency: str = "EUR"
    credit: bool = False

    @property
    def kind(self) -> str:
        if self.credit:
            return "credit note"
        return "usage" if self.plan else "fee"

    def used(self) -> Record | None:
        if self.kind != "usage":
            return None
        items = {"metric": "cpu", "unit": "h", "region": "eu", "organization": self.id}
        return {
            "id": self.id, "partner": self.partner, "day": f"{self.month}-10",
            "quantity": self.quantity, "amount": self.amount, "currency": self.currency,
            "recorded": f"{self.month}-11T00:00:00Z", "plan": self.plan, **items,
        }  # fmt: skip

    def billed(self) -> Record:
        usage = None if self.kind == "fee" else self.id
        line = {"usage": usage, "plan": self.plan, "quantity": self.quantity}
        line["amount"] = self.amount
        return {
            "id": f"b{self.id}", "partner": self.partner, "month": f"{self.month}-01",
            "total": self.amount, "currency": self.currency, "issued": f"{self.month}-28T00:00:00Z",
            "status": "paid", "kind": "credit" if self.credit else "invoice", "lines": [line],
        }  # fmt: skip


# The price of each plan rises by another amount: of the first, by none.
PLANS = tuple(
    Row(f"{plan}-{month}", f"{amount}.00", month=month, plan=f"plan {plan:02}")
    for plan in range(25)
    for month, amount in ((AUGUST, 10), (SEPTEMBER, 10 + plan))
)
OF_PLANS = (
    *PLANS,
    Row("fee", "2.50", plan=None),
    Row("more-before", "4.00", 4, month=AUGUST, plan="plan 24", partner="second"),
    Row("more", "6.00", 6, plan="plan 24", partner="second"),
)
FIRST_ROWS = (Row("begin", "1.00", month="2026-07", partner="begin"),)


def read_rows(stores: Stores, at: datetime, rows: Sequence[Row]) -> None:
    """Read usage and bills of rows."""
    stores.clock.now = at
    names = {row.partner for row in rows} | {"first"}
    usage = [record for record in (row.used() for row in rows) if record]
    lists = {
        "partners": partners(sorted(names)),
        "usage": usage,
        "billing": [row.billed() for row in rows],
    }
    for stream, records in lists.items():
        read(stores, Reading(records, stream, page_size=500))


def publish_then_and_now(
    stores: Stores, then: Sequence[Row], now: Sequence[Row], mapping: str = ""
) -> None:
    """Publish a version: what was known after the grace days of September, and what is now."""
    read_rows(stores, BEGIN, FIRST_ROWS)
    read_rows(stores, THEN, [*FIRST_ROWS, *then])
    read_rows(stores, NOW, [*FIRST_ROWS, *now])
    publish_now(stores, mapping)


def publish_now(stores: Stores, mapping: str = "") -> None:
    """Publish what was read, with its books."""
    write_durably(stores.home.mapping_file, (mapping or with_roles()).encode())
    build_with_books(stores)
