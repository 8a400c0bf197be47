"""`finance.receivables`: what is still to be paid, by how long it has been due."""

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.amounts import Amount
from pipelines.finance.reports.queries import read_figures
from pipelines.finance.reports.verdicts import judge
from pipelines.warehouse.books import BooksFolder
from pipelines.warehouse.duckdb_file import Row
from tests.cli.conftest import Cli
from tests.effort import EFFORT
from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used
from tests.reconcile.months import ACCOUNTS
from tests.reports.conftest import page_text
from tests.versions.homes import BEGIN, DAY, Record, Stores

PAYMENTS = 'due = "due"\npaid = "paidAt"\nopen = "amountDue"\ntax = "tax"\n'
COUNTED = 'counted_statuses = ["paid"]'
STATUSES = f'{COUNTED[:-1]}, "open"]\npaid_statuses = ["PAID "]'
BY_ALL = MAPPING.replace("line_usage", f"{PAYMENTS}line_usage").replace(COUNTED, STATUSES)
BY_STATUS = MAPPING.replace(COUNTED, STATUSES)
OPEN = "SELECT bill, open::VARCHAR, days FROM finance.receivables ORDER BY ALL"
REASON = "SELECT reason, is_needed FROM reconciliation.rules WHERE rule = 'receivables'"
AGES = {"first": 40, "second": 3}  # days overdue of two bills of one record
TODAY = (BEGIN + 2 * DAY).date()  # each list is read a day after the one before


def billed(bill_id: str, total: str = "5.00", **fields: Any) -> Record:
    return bill(bill_id, line("u", total), status=fields.pop("status", "open"), **fields)


def test_what_a_bill_says_is_open_counts_first_then_whether_it_is_paid(stores: Stores) -> None:
    kinds = [
        billed("part", amountDue="1.25", tax="0.80", due="2026-08-01", paidAt=None),
        billed("none left", amountDue="0.00"),
        billed("paid, yet open", amountDue="2.00", status="paid"),
        billed("paid on a day", amountDue=None, paidAt="2026-09-20T10:00:00Z"),
        billed("paid by status", status="paid"),
        billed("nobody can say"),
        billed("void", status="void", amountDue="5.00"),
        billed("credit", kind="credit", amountDue="3.00"),
    ]
    publish(stores, mapping=BY_ALL, usage=[used("u")], billing=kinds)
    assert stores.rows(OPEN) == [
        ("credit", "-3.00", "no due date"),
        ("nobody can say", None, "no due date"),
        ("paid, yet open", "2.00", "no due date"),
        ("part", "1.25", _group(TODAY - date(2026, 8, 1))),
    ]
    assert stores.rows("SELECT tax::VARCHAR FROM finance.receivables WHERE bill = 'part'") == [
        ("0.80",)
    ]


def check_page(text: str) -> None:
    claimed = "claim EUR&nbsp;6.50 back from bills that are paid as the service says"
    assert f"{claimed}, withhold EUR&nbsp;4.50 of bills that are not" in text
    in_question = "EUR 2: 9.50 1: 5.00 1: \u22121.00 13.50 9.00 USD 1: 5.00"
    assert f"Open credit notes Net After withholding {in_question} 5.00 5.00" in text
    assert "what you may claim back from bills that are paid, EUR&nbsp;6.50" in text


def test_what_is_overbilled_is_claimed_from_paid_bills_and_withheld_from_others(
    stores: Stores,
) -> None:
    """No more is withheld than is open: `part` has two breaks of 4.00 and 2.00, of 1.50."""
    stores.configure()
    bills = [
        bill("paid", line("a", "7.00"), status="paid"),
        bill("open", line("b", "8.00"), status="open", amountDue="8.00"),
        bill("part", line("c", "9.00"), line("d", "7.00"), status="open", amountDue="1.50"),
        bill("right", line("e"), status="open", amountDue="5.00"),
        bill("note", line(None, "1.00"), kind="credit", amountDue="1.00"),
        bill("dollars", line("f"), currency="USD", status="open", amountDue="5.00"),
    ]
    mapping = BY_ALL + ACCOUNTS
    usage = [*(used(name) for name in "abcde"), used("f", currency="USD")]
    publish(stores, mapping=mapping, partners=partners([FIRST]), usage=usage, billing=bills)
    ledger = judge(read_figures_of_books(stores)).ledger
    assert ledger
    assert ledger.withheld
    amounts = (ledger.claim["EUR"], ledger.paid()["EUR"])
    assert [str(each.amount) for each in amounts] == ["11.00", "6.50"]
    assert ledger.withheld["EUR"] == Amount("EUR", Decimal("4.50"), 2)
    check_page(page_text(stores))
    assert _after_withholding(stores) == [("EUR", "4.50", "9.00"), ("USD", "0", "5.00")]
    publish(stores, mapping=mapping.replace('"payable"', '"receivable"'))
    assert _after_withholding(stores) == [("EUR", None, None), ("USD", None, None)]
    assert "After withholding" not in page_text(stores)
    bills.append(bill("nobody can say", line(None, "3.00"), status="open", amountDue=None))
    publish(stores, mapping=mapping, billing=bills)
    assert _after_withholding(stores)[0] == ("EUR", "7.50", None)
    publish(stores, mapping=MAPPING.replace(COUNTED, f'{COUNTED[:-1]}, "open"]') + ACCOUNTS)
    unknown = judge(read_figures_of_books(stores)).ledger
    assert unknown
    assert unknown.withheld is None
    assert str(unknown.claim["EUR"].amount) == "14.00"
    assert _after_withholding(stores) == []


def _after_withholding(stores: Stores) -> list[tuple[Any, ...]]:
    names = ("currency", "withheld", "after_withholding")
    sums = Cli(stores.home).json("report")["verdict"]["to_be_paid"]
    return [tuple(row[name] for name in names) for row in sums]


@pytest.mark.long
def test_a_status_alone_says_that_a_bill_is_paid(stores: Stores) -> None:
    bills = [billed("a"), billed("b", status="paid"), billed("c", "2.00", kind="credit")]
    publish(stores, mapping=BY_STATUS, usage=[used("u")], billing=bills)
    assert stores.rows(OPEN) == [("a", "5.00", "no due date"), ("c", "-2.00", "no due date")]


def test_without_a_role_of_payment_nothing_is_said(stores: Stores) -> None:
    publish(stores, usage=[used("u")], billing=[billed("a", status="paid")])
    reason = "billing.open is not mapped; billing.paid is not mapped"
    assert stores.rows(REASON) == [(reason, False)]
    assert stores.rows("SELECT count(*) FROM reconciliation.receivables") == [(0,)]


def test_amounts_in_question_and_all_others_are_said(stores: Stores) -> None:
    bills = [
        bill("right", line("u"), status="open", amountDue="5.00"),
        bill("more", line("w", "7.50"), status="open", amountDue="2.50"),
        bill("less", line("y", "0.40"), status="open", amountDue="0.40"),  # there is no dispute
        bill("nobody can say", line("v", "3.00"), status="open", amountDue=None),
        bill("dollars", line("x", "1.00"), status="open", amountDue="1.00", currency="USD"),
    ]
    usage = [used("u"), used("w", "7.00"), used("v", "3.00"), used("y", "0.50")]
    usage += [used("x", "1.00", currency="USD")]
    stores.configure()
    publish(stores, mapping=BY_ALL, partners=partners([FIRST]), usage=usage, billing=bills)
    sums = Cli(stores.home).json("report")["verdict"]["to_be_paid"]
    assert sums == [
        _to_be_paid(
            "EUR", "7.90", in_question=("2.50", 1), not_in_question=("5.40", 3), bills=4, unknown=1
        ),
        _to_be_paid("USD", "1.00", in_question=("0.00", 0), not_in_question=("1.00", 1), bills=1),
    ]
    page = page_text(stores)
    assert "Not in question Open credit notes Net EUR 1: 2.50 3: 5.40 7.90 USD 1: 1.00 1.00" in page
    assert "Of 1 bill in EUR, nobody can say what is open." in page


def _to_be_paid(
    currency: str, total: str, *, bills: int, unknown: int = 0, **sums: tuple[str, int]
) -> dict[str, Any]:
    row: dict[str, Any] = {"currency": currency, "bills": bills, "unknown_bills": unknown}
    row |= {"credited": "0.00", "credit_notes": 0, "total": total}
    row |= {"withheld": None, "after_withholding": None}
    for name, (amount, number) in sums.items():
        row[name] = amount
        row[f"bills_{name}"] = number
    return row


def _group(overdue: timedelta) -> str:
    if overdue.days <= 0:
        return "not due"
    for days in (30, 60, 90):
        if overdue.days <= days:
            return f"{days - 29}-{days}"
    return ">90"


def test_a_break_is_as_old_as_its_bill_is_overdue(stores: Stores) -> None:
    twice = [billed(name, due=f"{TODAY - timedelta(days=days)}") for name, days in AGES.items()]
    publish(stores, mapping=BY_ALL, usage=[used("u"), used("v")], billing=twice)
    ages = "SELECT rule, age_days, due_on FROM reconciliation.breaks ORDER BY rule"
    month_over = (TODAY - date(2026, 9, 30)).days
    assert stores.rows(ages) == [
        ("billed_twice", 3, TODAY - timedelta(days=3)),
        ("not_billed", month_over, None),
    ]


@pytest.mark.long
def test_any_bills_are_open_by_age_as_the_model_says() -> None:
    for seed in range(2 * EFFORT):
        with TemporaryDirectory() as folder:
            check(Path(folder), Random(seed))


def check(folder: Path, chance: Random) -> None:
    stores = Stores.open(folder / "home")
    bills = []
    expected: dict[tuple[str, str], Decimal] = {}
    for number in range(60):
        cents = Decimal(chance.randrange(1, 100_000)) / 100
        left = cents if chance.random() < 0.5 else Decimal(chance.randrange(0, 500)) / 100
        due = TODAY - timedelta(days=chance.choice((-1, 0, 1, 30, 31, 60, 61, 90, 91, 400)))
        currency = chance.choice(("EUR", "USD"))
        kind = chance.choice(("invoice", "credit"))
        said = chance.random() < 0.6
        # A day of payment that is still to come is a plan; that of the service may be a day ahead.
        paid_in = chance.choice((None, -400, -1, 0, 1, 2, 3, 400))
        paid = None if paid_in is None else f"{TODAY + timedelta(days=paid_in)}"
        fields = {"due": f"{due}", "amountDue": str(left) if said else None, "paidAt": paid}
        is_paid = chance.random() < 0.5
        bills.append(
            billed(
                f"b{number}",
                str(cents),
                currency=currency,
                kind=kind,
                **fields,
                status="paid" if is_paid else "open",
            )
        )
        if not said and not is_paid and paid_in is not None and paid_in > 1:
            said, left = True, cents
        if said:
            key = (currency, _group(TODAY - due))
            sign = -1 if kind == "credit" else 1
            expected[key] = expected.get(key, Decimal()) + sign * left
    publish(stores, mapping=BY_ALL, usage=[used("u")], billing=bills)
    sums = "SELECT currency, days, sum(open) FROM finance.receivables GROUP BY ALL"
    found = {(currency, days): amount for currency, days, amount in stores.rows(sums) if amount}
    assert found == {key: amount for key, amount in expected.items() if amount}
    with BooksFolder(stores.warehouse).open_alone(_published(stores)) as db:
        tables = read_figures(db, 1, ["receivables", "to_be_paid"]).tables
    check_figures(tables, found)
    stores.metadata.close()


def check_figures(tables: dict[str, list[Row]], found: dict[tuple[str, str], Decimal]) -> None:
    """Compare the sums of bills, and of credit notes, with those of the view."""
    for row in tables["to_be_paid"]:
        of_bills = Decimal()
        for bills in tables["receivables"]:
            assert (bills["due_in"] == "overdue") == (bills["days"] != "not due")
            if bills["currency"] == row["currency"]:
                of_bills += bills["open"] or Decimal()
        net = [amount for (currency, _days), amount in found.items() if currency == row["currency"]]
        assert of_bills + row["credited"] == sum(net)
        assert min(of_bills, -row["credited"]) >= 0


def _published(stores: Stores) -> Any:
    return BooksFolder(stores.warehouse).published()
