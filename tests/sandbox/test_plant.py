"""Planted errors: found again in the data by their kind, with exactly the amounts that are told.

Not here: that unplanted data reconcile to the last digit (test_data).
"""

import hashlib
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from sandbox.data.dataset import Dataset
from sandbox.data.plant import COUNTS, EXTRA_KINDS, MORE_BILLS, Plant, PlantedError
from sandbox.data.sizes import Sizes
from tests.sandbox.lists import LISTS, dataset, everything, parsed, plant
from tests.sandbox.running import started

SIZES = Sizes(50, 4000, 800)
# SHA-256 of every list of seed 7 as it was before errors could be planted.
UNPLANTED = {
    0: "cb3292e6457472799642d3c7a9906ef67d43be8453a355822a6df9e407f84f3a",
    40: "d9cae5f4128354401dd62d08e2e1349a323f6f73ab31641b69f84c93a99c85f4",
}


@pytest.fixture(scope="module")
def errors() -> Plant:
    return plant(7, SIZES)


@pytest.fixture(scope="module")
def right() -> Dataset:
    return dataset(7, SIZES)


@pytest.fixture(scope="module")
def wrong(errors: Plant) -> Dataset:
    return dataset(7, SIZES, errors)


def by_key(data: Dataset, name: str, key: str) -> dict[str, Any]:
    return {row[key]: row for row in parsed(everything(data, name))}


def of(errors: Plant, kind: str) -> list[PlantedError]:
    found = [error for error in errors.errors if error.kind == kind]
    assert len(found) == COUNTS[kind]
    return found


@pytest.mark.parametrize("days", UNPLANTED)
def test_unplanted_data_are_byte_for_byte_what_they_were(days: int) -> None:
    data = dataset(7, Sizes(25, 2000, 200, days))
    digest = hashlib.sha256()
    for name in LISTS:
        digest.update(b"\n".join(everything(data, name)))
    assert digest.hexdigest() == UNPLANTED[days]


def test_everything_else_is_right(errors: Plant, right: Dataset, wrong: Dataset) -> None:
    for name in ("plans", "partners", "organizations"):
        assert everything(wrong, name) == everything(right, name)
    usage = [
        a
        for a, b in zip(everything(right, "usage"), everything(wrong, "usage"), strict=True)
        if a != b
    ]
    kinds = ("orphan_usage", "late_usage", "restated_after_bill")
    told = {error.usage_id for kind in kinds for error in of(errors, kind)}
    bills = by_key(wrong, "billing", "billingId")
    for error in of(errors, "price_change"):
        told |= {line["usageId"] for line in bills[error.billing_id]["lines"]}
    assert {row["usageId"] for row in parsed(usage)} == told
    changed = set(everything(right, "billing")) ^ set(everything(wrong, "billing"))
    told_bills = {error.billing_id for error in errors.errors}
    told_bills |= {error.other_id or "" for kind in MORE_BILLS for error in of(errors, kind)}
    assert {row["billingId"] for row in parsed(list(changed))} <= told_bills


def test_amounts_off_by_a_cent(errors: Plant, wrong: Dataset) -> None:
    usage, billing = by_key(wrong, "usage", "usageId"), by_key(wrong, "billing", "billingId")
    for error in of(errors, "amount_off"):
        bill = billing[error.billing_id]
        (line,) = (one for one in bill["lines"] if one["usageId"] == error.usage_id)
        row = usage[str(error.usage_id)]
        assert Decimal(line["amount"]) - Decimal(row["amount"]) == Decimal("0.01")
        assert sum(Decimal(one["amount"]) for one in bill["lines"]) == Decimal(bill["total"])
        assert error.amount == error.difference == "0.01"


def test_bills_missing_and_twice(errors: Plant, right: Dataset, wrong: Dataset) -> None:
    before, after = by_key(right, "billing", "billingId"), by_key(wrong, "billing", "billingId")
    assert wrong.billing.count == len(everything(wrong, "billing")) == len(after)
    for error in of(errors, "missing_bill"):
        assert error.billing_id not in after
        assert error.difference == f"-{before[error.billing_id]['total']}"
    for error in of(errors, "double_bill"):
        first, second = after[error.billing_id], after[str(error.other_id)]
        assert {name for name in first if first[name] != second[name]} == {
            "billingId",
            "invoiceNumber",
        }
        assert error.difference == error.amount == first["total"]
    numbers = Counter(bill["invoiceNumber"] for bill in after.values())
    assert set(numbers.values()) == {1}
    more = sum(COUNTS[kind] for kind in MORE_BILLS)
    assert len(after) == len(before) - COUNTS["missing_bill"] + more


def test_void_bills_and_credit_notes(errors: Plant, right: Dataset, wrong: Dataset) -> None:
    before, after = by_key(right, "billing", "billingId"), by_key(wrong, "billing", "billingId")
    for error in of(errors, "void_bill"):
        bill, void = after[error.billing_id], after[str(error.other_id)]
        assert bill == before[error.billing_id]
        assert (void["status"], void["kind"]) == ("void", "invoice")
        assert void["lines"] == bill["lines"]
        assert error.amount == void["total"] == bill["total"]
    for error in of(errors, "credit_note"):
        bill, note = after[error.billing_id], after[str(error.other_id)]
        (line,) = note["lines"]
        assert note["kind"] == "credit_note"
        assert error.usage_id == line["usageId"] == bill["lines"][0]["usageId"]
        assert error.amount == note["total"] == line["amount"]
        right_total = Decimal(before[error.billing_id]["total"])
        assert Decimal(bill["total"]) + Decimal(note["total"]) == right_total
        assert Decimal(note["total"]) < 0
        assert note["subtotal"] + Decimal(note["tax"]) == Decimal(note["total"])
    assert {error.difference for kind in EXTRA_KINDS for error in of(errors, kind)} == {"0.00"}


def test_orphans_belong_to_nobody_in_the_list(errors: Plant, wrong: Dataset) -> None:
    known = set(by_key(wrong, "partners", "partnerId"))
    for name, key, kind in (
        ("usage", "usageId", "orphan_usage"),
        ("billing", "billingId", "orphan_billing"),
    ):
        orphans = {
            k: row for k, row in by_key(wrong, name, key).items() if row["partnerId"] not in known
        }
        told = {str(error.usage_id or error.billing_id): error for error in of(errors, kind)}
        assert set(orphans) == set(told)
        for found, row in orphans.items():
            assert row["partnerId"] == told[found].other_id
            assert row.get("amount", row.get("total")) == told[found].amount
            assert told[found].difference == "0.00"


def test_late_usage_is_on_no_bill(errors: Plant, wrong: Dataset) -> None:
    usage, billing = by_key(wrong, "usage", "usageId"), by_key(wrong, "billing", "billingId")
    billed = {line["usageId"] for bill in billing.values() for line in bill["lines"]}
    for error in of(errors, "late_usage"):
        row, bill = usage[str(error.usage_id)], billing[error.billing_id]
        assert error.usage_id not in billed
        assert row["recordedAt"] > bill["issuedAt"]
        assert row["period"]["end"][:10] <= bill["period"]["end"]
        assert error.difference == f"-{row['amount']}"


def test_restated_rows_leave_their_bill_behind(
    errors: Plant, right: Dataset, wrong: Dataset
) -> None:
    before, after = by_key(right, "usage", "usageId"), by_key(wrong, "usage", "usageId")
    billing = by_key(wrong, "billing", "billingId")
    for error in of(errors, "restated_after_bill"):
        row, bill = after[str(error.usage_id)], billing[error.billing_id]
        (line,) = (one for one in bill["lines"] if one["usageId"] == error.usage_id)
        grown = Decimal(row["amount"]) - Decimal(line["amount"])
        assert line["amount"] == before[str(error.usage_id)]["amount"]
        assert grown == Decimal(error.amount) == -Decimal(error.difference) > 0
        assert row["revision"] == 2
        assert row["updatedAt"] > bill["issuedAt"]


def test_a_price_changes_alike_on_both_sides(errors: Plant, right: Dataset, wrong: Dataset) -> None:
    usage, billing = by_key(wrong, "usage", "usageId"), by_key(wrong, "billing", "billingId")
    before = by_key(right, "usage", "usageId")
    bills_before = by_key(right, "billing", "billingId")
    for error in of(errors, "price_change"):
        bill = billing[error.billing_id]
        for line in bill["lines"]:
            row = usage[line["usageId"]]
            usual = before[line["usageId"]]
            assert (line["amount"], line["quantity"]) == (row["amount"], row["quantity"])
            assert line["unitPrice"] == row["unitPrice"] == 2 * usual["unitPrice"]
            assert row["revision"] == 1
        more = Decimal(bill["total"]) - Decimal(bills_before[error.billing_id]["total"])
        assert more == Decimal(error.amount) > 0
        assert error.difference == "0.00"


def test_the_truth_is_the_same_every_night_and_another_with_another_seed(errors: Plant) -> None:
    later = Sizes(50, 4000, 800, 40)
    assert plant(7, later).errors == errors.errors
    assert plant(8, SIZES).errors != errors.errors
    data = by_key(dataset(7, later, plant(7, later)), "usage", "usageId")
    assert all(data[str(e.usage_id)]["revision"] == 2 for e in of(errors, "restated_after_bill"))


@pytest.mark.parametrize("sizes", [Sizes(0, 0, 0), Sizes(1, 3, 1), Sizes(3, 50, 0), Sizes(2, 0, 9)])
def test_small_data_have_fewer_errors_and_say_so(sizes: Sizes) -> None:
    errors = plant(7, sizes)
    data = dataset(7, sizes, errors)
    assert len(everything(data, "billing")) == data.billing.count
    assert sum(errors.report()["counts"].values()) == len(errors.errors) < sum(COUNTS.values())


def test_the_truth_is_told_and_served() -> None:
    options = ("--rate", "0", "--partners", "50", "--usage", "4000", "--billing", "800")
    with started(*options, "--plant") as running:
        told = running.told("GET", "/plant")
        bills = {bill["billingId"] for bill in running.records("/v2/billing", 100)}
    assert told["counts"] == COUNTS
    missing = {error["billing_id"] for error in told["errors"] if error["kind"] == "missing_bill"}
    assert len(missing) == 3
    assert not missing & bills


def test_without_plant_there_is_nothing_to_tell() -> None:
    with started("--usage", "1") as running:
        told = running.told("GET", "/plant")
    assert told["errors"] == []
    assert set(told["counts"].values()) == {0}
