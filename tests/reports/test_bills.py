"""What the report says of a bill: its usage, when it is due and paid, bills of the same usage."""

from pathlib import Path
from typing import Any

import pytest

from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.render import render_page
from tests.reconcile.books import FIRST, bill, line, partners, publish, used
from tests.reconcile.months import ACCOUNTS
from tests.reconcile.test_receivables import BY_ALL
from tests.reports.test_lists import lists_of
from tests.versions.homes import BEGIN, DAY, Stores

READ_ON = (BEGIN + 3 * DAY).date()  # bills, the last of three lists


def publish_bills(stores: Stores) -> None:
    """Bills that are paid, open, void, credited, and due on several days; one pays too much."""
    stores.configure()
    usage = [used("a", day="2026-09-03"), used("b", "7.00", quantity=2), used("c"), used("d")]
    usage += [used("e", currency="USD"), used("f", "3.00")]
    said = {"due": "2026-10-31", "amountDue": None, "paidAt": None, "status": "open"}
    paid = said | {"amountDue": "0.00", "paidAt": "2026-10-20T08:00:00Z"}
    days = {"today": 0, "week": 7, "month": 8, "edge": 30, "later": 31}
    bills = [
        bill("paid", line("a"), line("b", "7.50", 3), **paid),
        bill("unstated", line("c"), **said | {"status": "paid", "due": None}),
        bill("void", line("c"), **said | {"status": "void"}),
        bill("note", line("b", "0.50"), kind="credit", **said | {"amountDue": "0.50"}),
        bill("dear", line("d", "6.00"), **said | {"amountDue": "6.00"}),
        bill("euros", line("e"), **said | {"amountDue": "5.00"}),
        bill("over", line("f", "9.00"), **paid),
        *(
            bill(
                name,
                line(None, "1.00"),
                **said | {"due": f"{READ_ON + each * DAY}", "amountDue": "1.00"},
            )
            for name, each in days.items()
        ),
    ]
    publish(
        stores, mapping=BY_ALL + ACCOUNTS, partners=partners([FIRST]), usage=usage, billing=bills
    )


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    stores = Stores.open(tmp_path_factory.mktemp("bills") / "home")
    publish_bills(stores)
    return lists_of(render_page(read_figures_of_books(stores, with_details=True)))


def rows(lists: dict[str, Any], name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Return columns of a list; in place of its place, a bill has its name."""
    names = [row["bill"] for row in lists["bills"]["rows"]]
    found = []
    for row in lists[name]["rows"]:
        of_bill = (
            row if name == "bills" or "bill" not in row else row | {"bill": names[row["bill"]]}
        )
        found.append(tuple(of_bill[column] for column in columns))
    return sorted(found, key=str)


def test_a_line_has_the_usage_that_it_bills(lists: dict[str, Any]) -> None:
    """`=` is the value of the line. Usage in another currency has no amount beside the bill's."""
    columns = ("bill", "reference", "used_on", "used_quantity", "used_amount", "used_in")
    assert {row[:2]: row[2:] for row in rows(lists, "lines", *columns) if row[1]} == {
        ("paid", "a"): ("2026-09-03", "=", "=", None),
        ("paid", "b"): ("2026-09-10", "2", "7", None),
        ("note", "b"): ("2026-09-10", "2", "7", None),
        ("unstated", "c"): ("2026-09-10", "=", "=", None),
        ("void", "c"): ("2026-09-10", "=", "=", None),
        ("dear", "d"): ("2026-09-10", "=", "5", None),
        ("euros", "e"): ("2026-09-10", "=", None, "USD"),
        ("over", "f"): ("2026-09-10", "=", "3", None),
    }


def test_a_paid_bill_has_the_day_when_it_was_due_and_paid(lists: dict[str, Any]) -> None:
    found = {row[0]: row[1:] for row in rows(lists, "bills", "bill", "payment", "due", "paid_on")}
    assert found["paid"] == ("paid", "2026-10-31", "2026-10-20")
    assert found["unstated"] == ("paid", None, None)
    assert found["dear"] == ("to be paid", "2026-10-31", None)


def test_bills_of_the_same_usage_name_each_other(lists: dict[str, Any]) -> None:
    assert rows(lists, "same-usage", "bill", "other", "kind", "records", "others") == [
        ("note", "paid", "bill", 1, 1),
        ("paid", "note", "credit note", 1, 1),
        ("unstated", "void", "void", 1, 1),
        ("void", "unstated", "bill", 1, 1),
    ]


def test_what_is_due_by_partner_is_what_its_bills_have(lists: dict[str, Any]) -> None:
    """Days from today to 7 and from 8 to 30 are apart; credits and claims are in no other sum."""
    (row,) = lists["due"]["rows"]
    names = ("open", "overdue", "next_7", "next_30", "later", "in_question", "unpaid")
    assert [row[name] for name in names] == ["16", "11", "2", "2", "1", "16", "6"]
    assert (row["credited"], row["paid"]) == ("-0.5", "6")
    due = dict(rows(lists, "bills", "bill", "due_in"))
    assert due["edge"] == "8 to 30 days"
    assert due["today"] == due["week"] == "next 7 days"
    assert due["note"] is due["paid"] is None


def test_a_record_that_many_bills_name_does_not_fill_the_page(tmp_path: Path) -> None:
    stores = Stores.open(tmp_path / "home")
    stores.configure()
    many = [bill(f"b{number:02}", line("u", "1.00")) for number in range(60)]
    publish(stores, partners=partners([FIRST]), usage=[used("u")], billing=many)
    shown = lists_of(render_page(read_figures_of_books(stores, with_details=True)))["same-usage"]
    assert len(shown["rows"]) == 60 * 10
    assert {row["others"] for row in shown["rows"]} == {19, 20}
