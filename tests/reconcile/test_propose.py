"""The field that is proposed for each role, whatever the fields are called, and why."""

import json
import tomllib
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from pipelines.finance.mapping import Mapping, PartnerRoles
from pipelines.finance.reconcile.choices import Proposal
from pipelines.finance.reconcile.evidence import Share
from pipelines.finance.reconcile.propose import propose_roles
from sandbox.data.names import FieldNames
from tests.load.scans import Reading, open_warehouse
from tests.reconcile.books import SANDBOX_MAPPING
from tests.reconcile.made_up import Lists, usual

OTHER = """
partners.id=partnerId partners.name=name partners.external_id=externalId
usage.id=recordId usage.partner=reseller usage.organization=account
usage.period=servicePeriod usage.plan=product usage.metric=meter
usage.quantity=units usage.price=rate usage.amount=charge usage.currency=ccy
usage.recorded=bookedAt usage.updated=changedAt
billing.id=documentNo billing.partner=reseller billing.period=servicePeriod
billing.amount=gross billing.currency=ccy billing.issued=documentDate billing.updated=changedAt
billing.due=payableBy billing.tax=vat billing.paid_statuses=paid
billing.number=serial billing.status=state billing.counted_statuses=issued,paid
billing.kind=documentType billing.line_usage=items[].recordRef billing.line_quantity=items[].units
billing.line_price=items[].rate billing.line_amount=items[].charge
usage.amount_unit=major billing.amount_unit=major billing.other_statuses=void
billing.other_kinds=invoice
"""
Roles = dict[str, str]
Proposed = Callable[..., dict[str, Proposal]]
Change = Callable[[Lists], str]


@pytest.fixture
def proposed(tmp_path: Path) -> Iterator[Proposed]:
    """Load lists, each with its first field as the key unless told otherwise; propose."""

    def propose(lists: Lists, *, keys: bool = True, **partners: str) -> dict[str, Proposal]:
        for stream, records in lists.items():
            raws = [json.dumps(each, default=str) for each in records]
            key = next(iter(records[0])) if keys and records else None
            warehouse.load(Reading(raws, stream=stream, key=key))
        return propose_roles(warehouse.db, PartnerRoles(**partners))

    with open_warehouse(tmp_path) as warehouse:
        yield propose


def fields(found: dict[str, Proposal]) -> Roles:
    """Return the roles that have a field, each with it."""
    texts = {
        role: ",".join(each.field) if isinstance(each.field, tuple) else each.field
        for role, each in found.items()
    }
    return {role: text for role, text in texts.items() if text}


def roles(text: str) -> Roles:
    return dict(pair.split("=") for pair in text.split())


@pytest.mark.parametrize("names", ["usual", "other"])
def test_every_role_gets_its_field(proposed: Proposed, names: FieldNames) -> None:
    expected = Mapping.model_validate(tomllib.loads(SANDBOX_MAPPING)).fields()
    counted = {
        "billing.counted_statuses": "issued,paid",
        "billing.paid_statuses": "paid",
        **{
            role: value for role, value in roles(OTHER).items() if "unit" in role or "other" in role
        },
    }
    assert fields(proposed(usual(names))) == (
        expected | counted if names == "usual" else roles(OTHER)
    )


def test_evidence_is_counted_and_never_rounded_up(proposed: Proposed) -> None:
    lists = usual()
    lists["usage"][0]["partnerId"] = "nobody"
    lists["billing"][0]["total"] = "1.00"
    found = proposed(lists)
    for role, evidence in {
        "usage.id": "60 of 60 (100 %) rows have a value; it is the primary key of the list",
        "usage.partner": "59 of 60 (98.3 %) values are in partners.partnerId",
        "usage.price": "56 of 56 (100 %) sampled rows are quantity x unitPrice = amount",
        "billing.amount": "12 of 13 (92.3 %) sampled bills are the sum of their lines",
    }.items():
        assert found[role].evidence == f"{evidence}. The name fits."
    assert str(Share(999_999, 1_000_000)) == "999,999 of 1,000,000 (99.9 %)"
    assert str(Share(0, 0)) == "0 of 0 (0 %)"


def test_keys_that_the_sync_did_not_find(proposed: Proposed) -> None:
    """Of fields that differ in every row, the name decides."""
    found = proposed(usual(), keys=False)
    assert (found["usage.id"].field, found["billing.id"].field) == ("usageId", "billingId")
    assert "60 of 60 (100 %) rows have a value; all differ." in found["usage.id"].evidence


def names_that_say_nothing(lists: Lists) -> str:
    """Values alone show what can be counted: keys, references, currencies and money."""
    names = {"usageId": "a", "partnerId": "b", "currency": "c", "amount": "d", "total": "e"}
    for stream in ("usage", "billing"):
        text = json.dumps(lists[stream], default=str)
        for old, new in names.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        lists[stream] = json.loads(text)
    return """usage.id=a usage.partner=b usage.currency=c usage.amount=d
        billing.partner=b billing.currency=c billing.amount=e
        billing.line_usage=lines[].a billing.line_amount=lines[].d"""


def credit_notes(lists: Lists) -> str:
    for at, each in enumerate(lists["billing"]):
        each |= {"kind": "creditNote" if at == 3 else "invoice", "status": "settled"}
    return "billing.credit_kinds=creditNote billing.counted_statuses=settled"


def documents_that_bill_nothing(lists: Lists) -> str:
    """What another document replaces, or announces, would count twice."""
    names = ["paid", "superseded", "ProForma", "pro-forma", "replaced", "preview", "quoted"]
    for at, each in enumerate(lists["billing"]):
        each["status"] = names[at % len(names)]
    others = ",".join(sorted(names[1:]))
    return f"billing.counted_statuses=paid billing.other_statuses={others}"


def two_equally_good_fields(lists: Lists) -> str:
    for each in lists["usage"]:
        each |= {"sellerRef": each.pop("partnerId")}
        each |= {"buyerRef": each["sellerRef"], "planSku": 1, "planCode": "a"}
        del each["planId"]
    return "usage.partner= usage.plan="


def names_of_two_products(lists: Lists) -> str:
    for each in lists["usage"]:
        each |= {"charged": each["amount"], "seconds": each["quantity"]}
    return "usage.quantity=quantity usage.price=unitPrice usage.amount=amount"


def factors_without_names(lists: Lists) -> str:
    """A whole number is rather the quantity; of two prices nobody can say which is one."""
    for each in lists["usage"]:
        each |= {"x": each.pop("unitPrice"), "y": each.pop("quantity")}
    for each in lists["billing"]:
        for line in each["lines"]:
            line |= {"x": line.pop("unitPrice"), "y": f"{line.pop('quantity')}.00"}
            line |= {"amount": f"{Decimal(line['x']) * Decimal(line['y']):.6f}"}
    lines = "billing.line_quantity= billing.line_price= billing.line_amount=lines[].amount"
    return f"usage.quantity=y usage.price=x {lines}"


def a_tax_is_no_amount(lists: Lists) -> str:
    for each in lists["usage"]:
        del each["quantity"], each["unitPrice"]
        each |= {"taxRate": Decimal("0.19"), "tax": Decimal(each["amount"]) / 5}
    return "usage.quantity= usage.price= usage.amount=amount"


def amounts_with_a_currency(lists: Lists) -> str:
    """Decimals that are sent as texts are numbers; these are not."""
    for each in lists["usage"]:
        each["amount"] += " EUR"
    return "usage.price=unitPrice usage.amount="


def whole_amounts_as_texts(lists: Lists) -> str:
    """Texts of digits are numbers if a name or a product says so; an identifier is none."""
    for each in (*lists["usage"], *[line for bill in lists["billing"] for line in bill["lines"]]):
        if "sequence" in each:
            each["chargeId"] = str(1000 + each["sequence"])
        del each["unitPrice"]
        each |= {"quantity": str(each["quantity"]), "amount": each["amount"].replace(".", "")}
    for each in lists["billing"]:
        each |= {"total": str(int(Decimal(each["total"]) * 100)), "taxNumber": "1234"}
    names = "usage.quantity=quantity usage.amount=amount billing.line_quantity=lines[].quantity"
    return f"{names} billing.line_amount=lines[].amount billing.amount=total usage.price="


def amounts_by_agreement(lists: Lists) -> str:
    """Lines that add up to their usage say which field is the amount, though no name does."""
    whole_amounts_as_texts(lists)
    text = json.dumps(lists).replace('"amount"', '"betrag"').replace('"chargeId"', '"vorgang"')
    lists |= json.loads(text)
    return "usage.amount=betrag billing.line_amount=lines[].betrag usage.quantity=quantity"


def exact_amounts(lists: Lists) -> str:
    """A cent decides, also in products of more digits than floating point has."""
    for at, each in enumerate(lists["usage"]):
        price = Decimal(f"90071992547409.{93 + at % 7}")
        amount = (price * each["quantity"]).quantize(Decimal("0.01"))
        each |= {"unitPrice": price, "amount": amount + Decimal("0.01"), "exact": amount}
    return "usage.amount=exact"


def counting_in_every_record(lists: Lists) -> str:
    numbers = {each["usageId"]: at for at, each in enumerate(lists["usage"])}
    for each in lists["usage"]:
        each["usageId"] = numbers[each["usageId"]]
    for each in lists["billing"]:
        for at, line in enumerate(each["lines"]):
            line |= {"usageId": numbers[line["usageId"]], "position": at}
    return "billing.line_usage=lines[].usageId"


def fields_with_names_of_ours(lists: Lists) -> str:
    for each in (*lists["usage"], *lists["billing"]):
        each |= {"hash": "x", "value": each is lists["billing"][0] or None}
    return "usage.partner=partnerId billing.amount=total billing.counted_statuses=issued,paid"


def too_many_digits_for_a_decimal(lists: Lists) -> str:
    lists["billing"][0]["lines"] = [{"amount": "9" * 35 + ".99"}] * 30
    return "billing.amount=total billing.line_amount=lines[].amount"


def too_many_numbers(lists: Lists) -> str:
    for each in lists["usage"]:
        each |= {f"n{at}": at + each["sequence"] * at for at in range(12)}
    return "usage.amount=amount"


def no_bills(lists: Lists) -> str:
    lists["billing"] = []
    return "usage.amount=amount billing.id= billing.kind= billing.line_amount="


def no_partners(lists: Lists) -> str:
    lists["partners"] = []
    return "partners.id= usage.partner="


def many_lines_of_one_bill(lists: Lists) -> str:
    bill = lists["billing"][0]
    lists["billing"] = [
        {**bill, "total": Decimal(bill["total"]) * 2000, "lines": bill["lines"] * 2000}
    ]
    return "billing.line_price=lines[].unitPrice billing.amount=total"


EVIDENCE: dict[Change, str] = {
    names_that_say_nothing: "values are in usage.a.",
    many_lines_of_one_bill: "1 of 1 (100 %) sampled bills are the sum of their lines.",
    credit_notes: "Other values: invoice.",
    documents_that_bill_nothing: "Other values: ProForma, preview, pro-forma, quoted, replaced, ",
    two_equally_good_fields: "Equally good: sellerRef, buyerRef. Choose one in mapping.toml.",
    names_of_two_products: "sampled rows are quantity x unitPrice = amount",
    factors_without_names: "Equally good: lines[].",
    a_tax_is_no_amount: "60 of 60 (100 %) rows have a number; no product confirms it.",
    amounts_with_a_currency: "Nearest: amount, 0 of 60 (0 %) rows have a number;",
    whole_amounts_as_texts: "no product confirms it. The numbers are texts. The name fits.",
    amounts_by_agreement: "sums of lines are equal to their usage. The numbers are texts.",
    exact_amounts: "sampled rows are quantity x unitPrice = exact",
    counting_in_every_record: "65 of 65 (100 %) values are in usage.usageId.",
    fields_with_names_of_ours: "13 of 13 (100 %) sampled bills are the sum of their lines.",
    too_many_digits_for_a_decimal: "12 of 13 (92.3 %) sampled bills are the sum of their lines.",
    too_many_numbers: "quantity x unitPrice = amount (only 12 of 17 numbers)",
    no_bills: "There are no rows of billing.",
    no_partners: "partners.id has no field, so no field can refer to it.",
}


TOGETHER: dict[Change, Change] = {  # changes of fields that have nothing to do with each other
    credit_notes: exact_amounts,
    no_bills: a_tax_is_no_amount,
    no_partners: too_many_numbers,
    fields_with_names_of_ours: amounts_with_a_currency,
    counting_in_every_record: names_of_two_products,
}


@pytest.mark.parametrize("change", [each for each in EVIDENCE if each not in TOGETHER.values()])
def test_lists_that_are_different(proposed: Proposed, change: Change) -> None:
    lists = usual()
    expected = {each: roles(each(lists)) for each in (change, TOGETHER.get(change)) if each}
    found = proposed(lists)
    for each, mapped in expected.items():
        assert {role: fields(found).get(role, "") for role in mapped} == mapped
        assert any(EVIDENCE[each] in found[role].evidence for role in mapped)


def test_nothing_but_strange_records(proposed: Proposed) -> None:
    names = {"a[0]": "x", "b": [[1]], "c": {"d.e": None}, "f": ["g"], "{0}": {'"{': "h"}}
    assert not fields(proposed({"usage": [names, {}], "billing": [names, {}]}, keys=False))


def test_roles_of_partners_that_a_person_set(proposed: Proposed) -> None:
    lists = usual()
    for each in lists["partners"]:
        each["code"] = each.pop("partnerId")
    found = proposed(lists, id="code")
    assert (found["partners.id"].field, found["usage.partner"].field) == ("code", "partnerId")
    assert found["partners.id"].evidence == "mapping.toml says so."
