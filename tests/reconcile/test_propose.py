"""The field that is proposed for each role, whatever the fields are called, and why."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines.config.mapping import PartnerRoles
from pipelines.reconcile.evidence import Share
from pipelines.reconcile.propose import Proposal, propose_roles
from tests.load.scans import Reading, Warehouse, open_warehouse
from tests.reconcile.made_up import Lists, other, usual

PARTNERS = {"id": "partnerId", "name": "name", "external_id": "externalId"}
USAGE = {
    "id": "usageId",
    "partner": "partnerId",
    "organization": "organizationId",
    "period": "period.start",
    "plan": "planId",
    "metric": "metric",
    "quantity": "quantity",
    "price": "unitPrice",
    "amount": "amount",
    "currency": "currency",
    "recorded": "recordedAt",
    "updated": "updatedAt",
}
BILLING = {
    "id": "billingId",
    "partner": "partnerId",
    "period": "period.start",
    "amount": "total",
    "currency": "currency",
    "issued": "issuedAt",
    "updated": "updatedAt",
    "number": "invoiceNumber",
    "status": "status",
    "counted_statuses": ("open", "paid"),
    "line_usage": "lines[].usageId",
    "line_quantity": "lines[].quantity",
    "line_price": "lines[].unitPrice",
    "line_amount": "lines[].amount",
}
OTHER_USAGE = {
    "id": "recordId",
    "partner": "reseller",
    "period": "servicePeriod",
    "quantity": "units",
    "price": "rate",
    "amount": "charge",
    "currency": "ccy",
    "recorded": "bookedAt",
}
OTHER_BILLING = {
    "id": "documentNo",
    "partner": "reseller",
    "period": "servicePeriod",
    "amount": "gross",
    "currency": "ccy",
    "issued": "documentDate",
    "status": "state",
    "counted_statuses": ("settled",),
    "kind": "documentType",
    "credit_kinds": ("creditNote",),
    "line_usage": "items[].recordRef",
    "line_quantity": "items[].units",
    "line_amount": "items[].charge",
}
Expected = dict[str, str | None]
Proposed = Callable[..., dict[str, Proposal]]


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with open_warehouse(tmp_path) as opened:
        yield opened


@pytest.fixture
def proposed(warehouse: Warehouse) -> Proposed:
    """Load lists, each with its first field as the key unless told otherwise; propose."""

    def propose(lists: Lists, *, keys: bool = True, **partners: str) -> dict[str, Proposal]:
        for stream, records in lists.items():
            raws = [json.dumps(each, default=str) for each in records]
            key = next(iter(records[0])) if keys and records else None
            warehouse.load(Reading(raws, stream=stream, key=key))
        return propose_roles(warehouse.db, PartnerRoles(**partners))

    return propose


def fields(found: dict[str, Proposal], side: str) -> dict[str, Any]:
    roles = {role.removeprefix(f"{side}."): each.field for role, each in found.items()}
    return {role: field for role, field in roles.items() if field and "." not in role}


def test_the_names_of_the_sandbox(proposed: Proposed) -> None:
    found = proposed(usual())
    expected = {"partners": PARTNERS, "usage": USAGE, "billing": BILLING}
    assert {side: fields(found, side) for side in expected} == expected


def test_other_names(proposed: Proposed) -> None:
    found = proposed(other())
    assert (fields(found, "usage"), fields(found, "billing")) == (OTHER_USAGE, OTHER_BILLING)


def test_names_that_say_nothing(proposed: Proposed) -> None:
    """Values alone show what can be counted: keys, references, currencies and money."""
    lists = usual()
    names = {"usageId": "a", "partnerId": "b", "currency": "c", "amount": "d", "total": "e"}
    for stream in ("usage", "billing"):
        text = json.dumps(lists[stream], default=str)
        for old, new in names.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        lists[stream] = json.loads(text)
    found = proposed(lists)
    usage, billing = fields(found, "usage"), fields(found, "billing")
    assert [usage[role] for role in ("id", "partner", "currency", "amount")] == list("abcd")
    assert [billing[role] for role in ("partner", "currency", "amount")] == list("bce")
    assert (billing["line_usage"], billing["line_amount"]) == ("lines[].a", "lines[].d")


def test_evidence_is_counted_and_never_rounded_up(proposed: Proposed) -> None:
    lists = usual()
    lists["usage"][0]["partnerId"] = "nobody"
    lists["billing"][0]["total"] += 1
    found = proposed(lists)
    for role, evidence in {
        "usage.id": "60 of 60 (100 %) rows have a value; it is the primary key of the list",
        "usage.partner": "59 of 60 (98.3 %) values are in partners.partnerId",
        "usage.price": "60 of 60 (100 %) sampled rows are quantity x unitPrice = amount",
        "billing.amount": "11 of 12 (91.6 %) sampled bills are the sum of their lines",
    }.items():
        assert found[role].evidence == f"{evidence}. The name fits."
    assert str(Share(999_999, 1_000_000)) == "999,999 of 1,000,000 (99.9 %)"
    assert str(Share(0, 0)) == "0 of 0 (0 %)"


def test_keys_that_the_sync_did_not_find(proposed: Proposed) -> None:
    """Of fields that differ in every row, the name decides."""
    found = proposed(usual(), keys=False)
    assert (found["usage.id"].field, found["billing.id"].field) == ("usageId", "billingId")
    assert "60 of 60 (100 %) rows have a value; all differ." in found["usage.id"].evidence


def two_equally_good_fields(lists: Lists) -> Expected:
    for each in lists["usage"]:
        each |= {"sellerRef": each.pop("partnerId")}
        each |= {"buyerRef": each["sellerRef"], "planSku": 1, "planCode": "a"}
        del each["planId"]
    return {"usage.partner": None, "usage.plan": None}


def names_of_two_products(lists: Lists) -> Expected:
    for each in lists["usage"]:
        each |= {"charged": each["amount"], "seconds": each["quantity"]}
    return {f"usage.{name}": USAGE[name] for name in ("quantity", "price", "amount")}


def factors_without_names(lists: Lists) -> Expected:
    """A whole number is rather the quantity; of two prices nobody can say which is one."""
    for each in lists["usage"]:
        each |= {"x": each.pop("unitPrice"), "y": each.pop("quantity")}
    for each in lists["billing"]:
        for line in each["lines"]:
            line |= {"x": line.pop("unitPrice"), "y": f"{line.pop('quantity')}.00"}
            line |= {"amount": str(Decimal(line["x"]) * Decimal(line["y"]))}
    lines: Expected = {"billing.line_quantity": None, "billing.line_price": None}
    found: Expected = {"usage.quantity": "y", "usage.price": "x"}
    return {**found, **lines, "billing.line_amount": "lines[].amount"}


def a_tax_is_no_amount(lists: Lists) -> Expected:
    for each in lists["usage"]:
        del each["quantity"], each["unitPrice"]
        each |= {"taxRate": Decimal("0.19"), "tax": each["amount"] * 19 / 100}
    return {"usage.quantity": None, "usage.price": None, "usage.amount": "amount"}


def numbers_as_text(lists: Lists) -> Expected:
    """Decimals that are sent as texts are numbers; amounts with a currency in them are not."""
    for each in lists["usage"]:
        each |= {"unitPrice": str(each["unitPrice"]), "amount": f"{each['amount']} EUR"}
    return {"usage.price": "unitPrice", "usage.amount": None}


def exact_amounts(lists: Lists) -> Expected:
    """A cent decides, also in products of more digits than floating point has."""
    for at, each in enumerate(lists["usage"]):
        price = Decimal(f"90071992547409.{93 + at % 7}")
        amount = (price * each["quantity"]).quantize(Decimal("0.01"))
        each |= {"unitPrice": price, "amount": amount + Decimal("0.01"), "exact": amount}
    return {"usage.amount": "exact"}


def counting_in_every_record(lists: Lists) -> Expected:
    for at, each in enumerate(lists["usage"]):
        each["usageId"] = at
    for each in lists["billing"]:
        for at, line in enumerate(each["lines"]):
            line |= {"usageId": int(line["usageId"][1:]), "position": at}
    return {"usage.id": "usageId", "billing.line_usage": "lines[].usageId"}


def too_many_digits_for_a_decimal(lists: Lists) -> Expected:
    lists["billing"][0]["lines"] = [{"amount": "9" * 36 + ".99"}] * 30
    return {"billing.amount": "total", "billing.line_amount": "lines[].amount"}


CASES: dict[Callable[[Lists], Expected], str] = {
    two_equally_good_fields: "Equally good: sellerRef, buyerRef. Choose one in mapping.toml.",
    names_of_two_products: "sampled rows are quantity x unitPrice = amount",
    factors_without_names: "Equally good: lines[].",
    a_tax_is_no_amount: "60 of 60 (100 %) rows have a number; no product confirms it.",
    numbers_as_text: "Nearest: amount, 0 of 60 (0 %) rows have a number;",
    exact_amounts: "60 of 60 (100 %) sampled rows are quantity x unitPrice = exact",
    counting_in_every_record: "60 of 60 (100 %) values are in usage.usageId.",
    too_many_digits_for_a_decimal: "11 of 12 (91.6 %) sampled bills are the sum of their lines.",
}


@pytest.mark.parametrize("change", CASES)
def test_a_change_of_the_lists(proposed: Proposed, change: Callable[[Lists], Expected]) -> None:
    lists = usual()
    expected = change(lists)
    found = proposed(lists)
    assert {role: found[role].field for role in expected} == expected
    assert any(CASES[change] in found[role].evidence for role in expected)


def test_only_so_many_number_columns_are_multiplied(proposed: Proposed) -> None:
    usage = usual()["usage"]
    for each in usage:
        each |= {f"n{at}": at + each["sequence"] * at for at in range(12)}
    evidence = proposed({"usage": usage})["usage.amount"].evidence
    assert "quantity x unitPrice = amount (only 12 of 17 numbers)" in evidence


def test_lists_without_rows(proposed: Proposed) -> None:
    found = proposed({"partners": [], "usage": usual()["usage"], "billing": []})
    for side in ("partners", "billing"):
        assert not fields(found, side)
        reasons = {each.evidence for role, each in found.items() if role.startswith(side)}
        assert reasons == {f"There are no rows of {side}."}
    assert found["usage.partner"].evidence == "partners.id has no field, so none can refer to it."
    assert fields(found, "usage").keys() == USAGE.keys() - {"partner"}


def test_nothing_but_strange_records(proposed: Proposed) -> None:
    names = {"a[0]": "x", "b": [[1]], "c": {"d.e": None}, "f": ["g"], "{0}": {'"{': "h"}}
    found = proposed({"usage": [names, {}], "billing": [names, {}]}, keys=False)
    assert not any(each.field for each in found.values())


def test_roles_of_partners_that_a_person_set(proposed: Proposed) -> None:
    lists = usual()
    for each in lists["partners"]:
        each["code"] = each.pop("partnerId")
    found = proposed(lists, id="code")
    assert (found["partners.id"].field, found["usage.partner"].field) == ("code", "partnerId")
    assert found["partners.id"].evidence == "mapping.toml says so."
