"""Ordinary data: plausible amounts, bills that do not count, credit notes; other field names.

Not here: awkward data, which all other tests use.
"""

from collections import Counter, defaultdict
from decimal import Decimal
from statistics import fmean, median
from typing import Any

import pytest

from sandbox.data.dataset import Dataset, dataset
from sandbox.data.extra import EVERY, Extras
from sandbox.data.names import OTHER
from sandbox.data.plant import COUNTS, EXTRA_KINDS, plant
from sandbox.data.sizes import Sizes
from tests.sandbox.lists import LISTS, everything, parsed
from tests.sandbox.running import SMALL, started
from tests.sandbox.schema import faults

SIZES = Sizes(100, 12_000, 1_200, 70)  # twelve months of history, and November and December
UNCOUNTED = {"void", "draft", "cancelled"}
MINOR_UNITS = {"EUR": 2, "USD": 2, "GBP": 2, "JPY": 2, "KWD": 3}  # JPY is written with two as well
Month = tuple[str, str, str]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return dataset(7, SIZES)


@pytest.fixture(scope="module")
def usage(data: Dataset) -> list[Any]:
    return parsed(everything(data, "usage"))


@pytest.fixture(scope="module")
def billing(data: Dataset) -> list[Any]:
    return parsed(everything(data, "billing"))


def balances(usage: list[Any], billing: list[Any]) -> dict[Month, Decimal]:
    """Give billed minus used by partner, month and currency, of bills that count."""
    found: dict[Month, Decimal] = defaultdict(Decimal)
    for row in usage:
        found[row["partnerId"], row["period"]["start"][:7], row["currency"]] -= Decimal(
            row["amount"]
        )
    for bill in billing:
        month = bill["partnerId"], bill["period"]["start"][:7], bill["currency"]
        found[month] += 0 if bill["status"] in UNCOUNTED else Decimal(bill["total"])
    return found


def test_amounts_are_ordinary(usage: list[Any]) -> None:
    amounts = [Decimal(row["amount"]) for row in usage]
    assert Decimal("0.01") <= min(amounts) <= max(amounts) <= 50_000
    assert 50 < median(amounts) < 120
    assert {row["currency"] for row in usage} == set(MINOR_UNITS)
    for row in usage:
        assert len(row["amount"].partition(".")[2]) == MINOR_UNITS[row["currency"]]
    assert max(row["sequence"] for row in usage) == len(usage)
    assert all((row.get("note") or "").isascii() for row in usage)


@pytest.mark.parametrize("days", [1_000, 36_000])
def test_amounts_stay_ordinary_for_a_century(days: int) -> None:
    data = dataset(7, Sizes(25, 500, 50, days))
    rows = parsed(data.usage.rows(0, 500) + data.usage.rows(data.usage.count - 500, 10**9))
    amounts = [Decimal(row["amount"]) for row in rows]
    assert Decimal("0.01") <= min(amounts) <= max(amounts) <= 50_000


def test_amounts_grow_and_the_fourth_quarter_is_higher(usage: list[Any]) -> None:
    months = defaultdict(list)
    for row in usage:
        months[row["period"]["start"][:7]].append(float(row["amount"]))
    means = {month: fmean(amounts) for month, amounts in months.items()}
    assert len(means) > 12
    others = fmean(means[f"2026-{month:02d}"] for month in range(1, 10))
    assert means["2026-10"] > 1.1 * others
    grown = fmean((means["2026-11"], means["2026-12"])) / fmean(
        (means["2025-11"], means["2025-12"])
    )
    assert 1.02 < grown < 1.35


def test_the_bills_that_count_are_the_usage(usage: list[Any], billing: list[Any]) -> None:
    assert set(balances(usage, billing).values()) == {0}
    states = Counter((bill["status"], bill["kind"]) for bill in billing)
    kinds = Counter(kind for _status, kind in states.elements())
    assert set(states) == {
        *((status, "invoice") for status in ("issued", "paid", *UNCOUNTED)),
        ("issued", "credit_note"),
        ("paid", "credit_note"),
    }
    share = sum(states[status, "invoice"] for status in UNCOUNTED) / len(billing)
    assert 0.02 < share < 0.05
    assert 0.005 < kinds["credit_note"] / len(billing) < 0.02


def test_lines_of_bills_that_count_add_up_to_their_usage_rows(
    usage: list[Any], billing: list[Any]
) -> None:
    lines: dict[str, list[Any]] = defaultdict(list)
    for bill in billing:
        assert sum(Decimal(line["amount"]) for line in bill["lines"]) == Decimal(bill["total"])
        assert bill["subtotal"] + Decimal(bill["tax"]) == Decimal(bill["total"])
        assert (Decimal(bill["total"]) < 0) == (bill["kind"] == "credit_note")
        if bill["status"] not in UNCOUNTED:
            for line in bill["lines"]:
                lines[line["usageId"]].append(line)
    for row in usage:
        own = lines.pop(row["usageId"])
        assert sum(Decimal(line["amount"]) for line in own) == Decimal(row["amount"])
        assert sum(line["quantity"] for line in own) == row["quantity"]
    assert not lines


def test_every_bill_has_one_place_that_growth_does_not_change(data: Dataset) -> None:
    places, extras = Extras(), list[int]()
    for group in range(5 * EVERY):
        place = places.count(group)
        assert places.at(place) == (group, "")
        if places.of(group):
            assert places.at(place + 1) == (group, places.of(group))
            extras.append(group)
    assert len(extras) == 5
    assert places.count(5 * EVERY) == 5 * EVERY + 5
    bills = parsed(everything(data, "billing"))
    assert len({bill["billingId"] for bill in bills}) == data.billing.count == len(bills)
    assert len({bill["invoiceNumber"] for bill in bills}) == len(bills)
    earlier = parsed(everything(dataset(7, Sizes(100, 12_000, 1_200, 3)), "billing"))
    assert [bill["billingId"] for bill in bills[: len(earlier)]] == [
        bill["billingId"] for bill in earlier
    ]


@pytest.mark.parametrize(
    "sizes", [Sizes(0, 0, 0), Sizes(1, 3, 1), Sizes(3, 50, 0), Sizes(5, 1, 99)]
)
def test_small_data_are_whole(sizes: Sizes) -> None:
    for errors in (plant(7, sizes), None):
        data = dataset(7, sizes, errors) if errors else dataset(7, sizes)
        assert all(len(everything(data, name)) == getattr(data, name).count for name in LISTS)


@pytest.mark.parametrize("days", [0, 40])
def test_planted_void_bills_and_credit_notes_cause_no_difference(days: int) -> None:
    sizes = Sizes(100, 12_000, 1_200, days)
    errors = plant(7, sizes)
    data = dataset(7, sizes, errors)
    assert errors.report()["counts"] == COUNTS
    expected: dict[Month, Decimal] = defaultdict(Decimal)
    for error in errors.errors:
        month = error.month[:7], error.currency
        if error.kind.startswith("orphan"):  # the partner is owed what the stranger has
            sign = 1 if error.kind == "orphan_usage" else -1
            expected[error.partner_id, *month] += sign * Decimal(error.amount)
            expected[str(error.other_id), *month] -= sign * Decimal(error.amount)
        else:
            expected[error.partner_id, *month] += Decimal(error.difference)
        assert error.kind not in EXTRA_KINDS or error.difference == "0.00"
    found = balances(parsed(everything(data, "usage")), parsed(everything(data, "billing")))
    assert {month: left for month, left in found.items() if left} == {
        month: left for month, left in expected.items() if left
    }
    bills = {bill["billingId"]: bill for bill in parsed(everything(data, "billing"))}
    for error in errors.errors:
        if error.kind in EXTRA_KINDS:
            extra = bills[str(error.other_id)]
            assert [extra["total"], extra["partnerId"], extra["period"]["start"]] == [
                error.amount,
                error.partner_id,
                error.month,
            ]


def renamed(record: Any, stream: str) -> Any:
    """Give a record with the other names; of its period the month alone."""
    names = OTHER[stream] | {"period": "servicePeriod"}
    if isinstance(record, dict):
        return {names.get(name, name): renamed(value, stream) for name, value in record.items()}
    return [renamed(one, stream) for one in record] if isinstance(record, list) else record


@pytest.mark.parametrize("stream", ["usage", "billing"])
def test_other_names_carry_the_same_values(data: Dataset, stream: str) -> None:
    other = parsed(everything(dataset(7, SIZES, field_names="other"), stream))
    for record, same in zip(other, parsed(everything(data, stream)), strict=True):
        month = same | {"period": same["period"]["start"][:7]}
        assert record == renamed(month, stream)
        assert not {*OTHER[stream], "period"} & set(record)


def test_other_names_leave_the_other_lists_as_they_are(data: Dataset) -> None:
    other = dataset(7, SIZES, field_names="other")
    for name in ("plans", "partners", "organizations"):
        assert everything(other, name) == everything(data, name)


def test_ordinary_data_are_the_default_and_as_described() -> None:
    with started("--rate", "0", *SMALL, awkward=False) as running, running.client() as client:
        described = client.get("/docs/openapi.json").json()
        bills = running.records("/v2/billing", 100)
        rows = running.records("/v2/usage", 500)
    for schema, records in (("Billing", bills), ("Usage", rows)):
        reference = {"$ref": f"#/components/schemas/{schema}"}
        assert [fault for record in records for fault in faults(described, reference, record)] == []
    assert len(bills) > 150


def test_other_names_are_served_with_changes_and_planted_errors() -> None:
    options = ("--rate", "0", *SMALL, "--field-names", "other", "--plant")
    with started(*options, awkward=False) as running, running.client() as client:
        running.change("usage", update=3)
        rows = running.records("/v2/usage", 100)
        planted = running.told("GET", "/plant")["errors"]
        bills = {bill["documentNo"]: bill for bill in running.records("/v2/billing", 100)}
        partner = running.records("/v2/partners")[0]
        described = client.get("/docs/openapi.json").json()
        assert client.get("/docs/").status_code == 200
    assert set(partner) == {"partnerId", "name", "externalId"}
    assert max(row["revision"] for row in rows) > 1
    told = [error for error in planted if error["kind"] == "credit_note"]
    assert told
    for error in told:
        assert bills[error["other_id"]]["gross"] == error["amount"]
        assert bills[error["other_id"]]["documentType"] == "credit_note"
    assert described["components"]["schemas"]["Usage"]["properties"] == {}
