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
    "organization": None,
    "period": "period.start",
    "amount": "total",
    "currency": "currency",
    "issued": "issuedAt",
    "updated": "updatedAt",
    "number": "invoiceNumber",
    "status": "status",
    "counted_statuses": ("open", "paid"),
    "kind": None,
    "credit_kinds": None,
    "line_usage": "lines[].usageId",
    "line_plan": None,
    "line_quantity": "lines[].quantity",
    "line_price": "lines[].unitPrice",
    "line_amount": "lines[].amount",
}
OTHER_USAGE = {
    "id": "recordId",
    "partner": "reseller",
    "organization": None,
    "period": "servicePeriod",
    "plan": None,
    "metric": None,
    "quantity": "units",
    "price": "rate",
    "amount": "charge",
    "currency": "ccy",
    "recorded": "bookedAt",
    "updated": None,
}
OTHER_BILLING = {
    "id": "documentNo",
    "partner": "reseller",
    "organization": None,
    "period": "servicePeriod",
    "amount": "gross",
    "currency": "ccy",
    "issued": "documentDate",
    "updated": None,
    "number": None,
    "status": "state",
    "counted_statuses": ("settled",),
    "kind": "documentType",
    "credit_kinds": ("creditNote",),
    "line_usage": "items[].recordRef",
    "line_plan": None,
    "line_quantity": "items[].units",
    "line_price": None,
    "line_amount": "items[].charge",
}


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with open_warehouse(tmp_path) as opened:
        yield opened


Proposed = Callable[..., dict[str, Proposal]]


@pytest.fixture
def proposed(warehouse: Warehouse) -> Proposed:
    """Load lists, each with its first field as the key unless told otherwise; propose."""

    def propose(lists: Lists, *, keys: bool = True, **partners: str) -> dict[str, Proposal]:
        for stream, records in lists.items():
            raws = [json.dumps(each, default=str) for each in records]
            key = next(iter(records[0])) if keys and records else None
            warehouse.load(Reading(raws, stream=stream, key=key))
        found = propose_roles(warehouse.db, PartnerRoles(**partners))
        return {each.role: each for each in found}

    return propose


def fields(found: dict[str, Proposal], side: str) -> dict[str, Any]:
    return {
        role.removeprefix(f"{side}."): each.path or each.values or None
        for role, each in found.items()
        if role.startswith(f"{side}.")
    }


def test_the_names_of_the_sandbox(proposed: Proposed) -> None:
    found = proposed(usual())
    names = {"id": "partnerId", "name": "name", "external_id": "externalId"}
    assert fields(found, "partners") == names
    assert (fields(found, "usage"), fields(found, "billing")) == (USAGE, BILLING)


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
    share = "59 of 60 (98.3 %)"
    assert found["usage.partner"].evidence == (
        f"{share} values are in partners.partnerId. The name fits."
    )
    assert found["billing.amount"].evidence == (
        "11 of 12 (91.6 %) sampled bills are the sum of their lines. The name fits."
    )
    assert found["usage.price"].evidence == (
        "60 of 60 (100 %) sampled rows are quantity x unitPrice = amount. The name fits."
    )
    assert found["usage.id"].evidence == "It is the primary key of the list. The name fits."
    assert str(Share(999_999, 1_000_000)) == "999,999 of 1,000,000 (99.9 %)"
    assert str(Share(0, 0)) == "0 of 0 (0.0 %)"


def test_of_two_equally_good_fields_none_is_proposed(proposed: Proposed) -> None:
    lists = usual()
    for each in lists["usage"]:
        each |= {"sellerRef": each.pop("partnerId")}
        each |= {"buyerRef": each["sellerRef"], "planSku": 1, "planCode": "a"}
        del each["planId"]
    del lists["billing"]
    found = proposed(lists)
    for role, paths in {
        "usage.partner": "sellerRef, buyerRef",
        "usage.plan": "planSku, planCode",
    }.items():
        assert found[role].path is None
        assert found[role].evidence == f"Equally good: {paths}. Choose one in mapping.toml."


def test_a_name_decides_between_products(proposed: Proposed) -> None:
    usage = usual()["usage"]
    for each in usage:
        each |= {"charged": each["amount"], "seconds": each["quantity"]}
    assert fields(proposed({"usage": usage}), "usage") == USAGE | {"partner": None}


def test_factors_without_names(proposed: Proposed) -> None:
    """A whole number is rather the quantity; of two prices nobody can say which is one."""
    lists = usual()
    for each in lists["usage"]:
        each |= {"x": each.pop("unitPrice"), "y": each.pop("quantity")}
    for each in lists["billing"]:
        for line in each["lines"]:
            line |= {"x": line.pop("unitPrice"), "y": f"{line.pop('quantity')}.00"}
            line |= {"amount": str(Decimal(line["x"]) * Decimal(line["y"]))}
    found = proposed(lists)
    assert [fields(found, "usage")[name] for name in ("quantity", "price")] == ["y", "x"]
    assert fields(found, "billing")["line_amount"] == "lines[].amount"
    for role in ("billing.line_quantity", "billing.line_price"):
        assert found[role].path is None
        assert found[role].evidence.startswith("Equally good: lines[].")


def test_a_tax_is_no_amount(proposed: Proposed) -> None:
    usage = usual()["usage"]
    for each in usage:
        del each["quantity"], each["unitPrice"]
        each |= {"taxRate": Decimal("0.19"), "tax": each["amount"] * 19 / 100}
    found = proposed({"usage": usage})
    money = [found[f"usage.{name}"].path for name in ("quantity", "price", "amount")]
    assert money == [None, None, "amount"]
    assert found["usage.amount"].evidence == (
        "60 of 60 (100 %) rows have a number; no product confirms it. The name fits."
    )


def test_only_so_many_number_columns_are_multiplied(proposed: Proposed) -> None:
    usage = usual()["usage"]
    for each in usage:
        each |= {f"n{at}": at + each["sequence"] * at for at in range(12)}
    evidence = proposed({"usage": usage})["usage.amount"].evidence
    assert evidence.endswith(" Of 17 numbers, only 12 were multiplied.")


def test_numbers_as_text(proposed: Proposed) -> None:
    """Decimals that are sent as texts are numbers; amounts with a currency in them are not."""
    usage = usual()["usage"]
    for each in usage:
        each |= {"unitPrice": str(each["unitPrice"]), "amount": f"{each['amount']} EUR"}
    found = proposed({"usage": usage})
    assert (found["usage.price"].path, found["usage.amount"].path) == ("unitPrice", None)
    assert found["usage.amount"].evidence == "amount holds text, not numbers."


def test_amounts_are_exact(proposed: Proposed) -> None:
    """A cent decides, also in products of more digits than floating point has."""
    usage = usual()["usage"]
    for at, each in enumerate(usage):
        price = Decimal(f"90071992547409.{93 + at % 7}")
        amount = (price * each["quantity"]).quantize(Decimal("0.01"))
        each |= {"unitPrice": price, "amount": amount + Decimal("0.01"), "exact": amount}
    assert proposed({"usage": usage})["usage.amount"].path == "exact"


def test_keys_that_the_sync_did_not_find(proposed: Proposed) -> None:
    """Of fields that differ in every row, the one to which another list refers is the key."""
    found = proposed(usual(), keys=False)
    assert (found["usage.id"].path, found["billing.id"].path) == ("usageId", "billingId")
    assert found["usage.id"].evidence == (
        "60 of 60 (100 %) values of another list refer to it. The name fits."
    )


def test_what_counts_in_every_record_refers_to_nothing(proposed: Proposed) -> None:
    lists = usual()
    for at, each in enumerate(lists["usage"]):
        each["usageId"] = at
    for each in lists["billing"]:
        for at, line in enumerate(each["lines"]):
            line |= {"usageId": int(line["usageId"][1:]), "position": at}
    del lists["partners"]
    assert fields(proposed(lists), "billing") == BILLING | {"partner": None}


def test_lists_without_rows(proposed: Proposed) -> None:
    found = proposed({"partners": [], "usage": usual()["usage"], "billing": []})
    for side in ("partners", "billing"):
        assert not any(fields(found, side).values())
        reasons = {each.evidence for role, each in found.items() if role.startswith(side)}
        assert reasons == {f"There are no rows of {side}."}
    assert found["usage.partner"].evidence == "partners.id has no field, so none can refer to it."
    assert fields(found, "usage") == USAGE | {"partner": None}


def test_nothing_but_strange_records(proposed: Proposed) -> None:
    records = [{"a[0]": "x", "b": [[1]], "c": {"d.e": None}, "f": ["g"]}, {}]
    found = proposed({"usage": records, "billing": records}, keys=False)
    assert not any(each.path for each in found.values())


def test_sums_that_no_decimal_can_hold(proposed: Proposed) -> None:
    billing = usual()["billing"]
    billing[0]["lines"] = [{"amount": "9" * 36 + ".99"}] * 30
    assert proposed({"billing": billing})["billing.amount"].evidence == (
        "12 of 12 (100 %) rows have a number; no lines add up to it. The name fits."
    )


def test_roles_of_partners_that_a_person_set(proposed: Proposed) -> None:
    lists = usual()
    del lists["billing"]
    for each in lists["partners"]:
        each["code"] = each.pop("partnerId")
    found = proposed(lists, id="code")
    assert (found["partners.id"].path, found["usage.partner"].path) == ("code", "partnerId")
    assert found["partners.id"].evidence == "mapping.toml says so."
