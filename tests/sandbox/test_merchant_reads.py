"""What an API key may read: lists in the envelope, objects, all of its own organization.

Not here: who is let in (test_keys), what is written (test_merchant_writes).
"""

import re
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.sandbox.merchants import assert_problem, key_client, listed
from tests.sandbox.running import API_KEY, Running, started
from tests.sandbox.schema import faults, resolved

LISTS = {
    "/v2/gateways": "gatewayId",
    "/v2/invoices": "invoiceId",
    "/v2/customers": "customerId",
    "/v2/payment-methods": "paymentMethodId",
    "/v2/transactions": "transactionId",
    "/v2/users": "userId",
    "/v2/emails": "emailId",
    "/v2/autoprocessing/forecast": "invoiceId",
    "/v2/payment-method-requests": "paymentMethodRequestId",
}
OBJECTS = ["/v2/settings", "/v2/profile"]
BAD_QUERIES = ["limit=0", "limit=101", "limit=-1", "limit=x", "limit=1.0", "limit=", "offset=-1"]
ID = re.compile(r"[0-9a-f]{24}")


@pytest.fixture(scope="module")
def described(admin: httpx.Client) -> Any:
    return admin.get("/docs/openapi.json").json()


def success(described: Any, path: str) -> Any:
    answer = described["paths"][path]["get"]["responses"]["200"]
    return answer["content"]["application/json"]["schema"]


@pytest.mark.parametrize("path", LISTS)
def test_a_list_is_paged_by_the_general_bounds(admin: httpx.Client, path: str) -> None:
    whole = listed(admin, path)
    page = admin.get(path).json()
    assert page["data"] == whole[:20]
    following = 20 if len(whole) > 20 else None
    assert page["pagination"] == {
        "limit": 20,
        "offset": 0,
        "has_more": following is not None,
        "next_offset": following,
        "prev_offset": None,
    }
    assert listed(admin, path, 7) == whole
    beyond = admin.get(path, params={"offset": 10**30}).json()
    assert (beyond["data"], beyond["pagination"]["has_more"]) == ([], False)
    for query in BAD_QUERIES:
        problem = assert_problem(admin.get(f"{path}?{query}"), 400)
        assert [one["field"] for one in problem["errors"]] == [query.partition("=")[0]]


@pytest.mark.parametrize("path", LISTS)
def test_records_are_as_described_and_have_identifiers(
    admin: httpx.Client, described: Any, path: str
) -> None:
    page = resolved(described, success(described, path)["$ref"])
    schema = page["properties"]["data"]["items"]
    records = listed(admin, path)
    assert [fault for one in records for fault in faults(described, schema, one)] == []
    named = resolved(described, schema["$ref"])["properties"]
    assert {name for one in records for name in one} == set(named)
    ids = [one[LISTS[path]] for one in records]
    assert all(ID.fullmatch(one) for one in ids)
    assert len(set(ids)) == len(ids) > 0


def test_the_invoice_list_alone_tells_its_total(admin: httpx.Client) -> None:
    count = len(listed(admin, "/v2/invoices"))
    for offset in (0, 20, 10_000):
        page = admin.get("/v2/invoices", params={"offset": offset}).json()
        assert set(page) == {"data", "pagination", "total"}
        assert page["total"] == count == 240
    others = [admin.get(path).json() for path in LISTS if path != "/v2/invoices"]
    assert {frozenset(page) for page in others} == {frozenset({"data", "pagination"})}


@pytest.mark.parametrize("path", OBJECTS)
def test_settings_and_profile_are_as_described(
    merchants: Running, admin: httpx.Client, described: Any, path: str
) -> None:
    found = admin.get(path).json()
    assert list(faults(described, success(described, path), found)) == []
    with key_client(merchants, "other") as other:
        assert other.get(path).json()["organizationId"] != found["organizationId"]


def test_the_profile_is_the_organization_that_partners_see(
    merchants: Running, admin: httpx.Client
) -> None:
    profile = admin.get("/v2/profile").json()
    with merchants.client(merchants.token("whole", "s-whole")) as partner:
        seen = partner.get("/v2/organizations").json()["data"][0]
    assert {name: profile[name] for name in ("organizationId", "partnerId", "name")} == {
        name: seen[name] for name in ("organizationId", "partnerId", "name")
    }


def test_one_customer_is_the_one_of_the_list(merchants: Running, admin: httpx.Client) -> None:
    for customer in listed(admin, "/v2/customers")[:5]:
        path = f"/v2/customers/{customer['customerId']}"
        assert admin.get(path).json() == customer
        with key_client(merchants, "other") as other:
            assert_problem(other.get(path), 404)
    for unknown in ("0" * 24, "x", "%E2%82%AC", "a" * 5000):
        assert_problem(admin.get(f"/v2/customers/{unknown}"), 404)


@pytest.mark.parametrize("path", LISTS)
def test_organizations_share_no_record(merchants: Running, path: str) -> None:
    ids = []
    for key_id in ("admin", "other", "support"):
        with key_client(merchants, key_id) as client:
            ids.append({one[LISTS[path]] for one in listed(client, path)})
    assert not ids[0] & ids[1]
    assert not ids[1] & ids[2]
    with key_client(merchants, "second") as same:
        assert {one[LISTS[path]] for one in listed(same, path)} == ids[0]


def test_references_between_the_lists_hold(admin: httpx.Client) -> None:
    lists = {path: listed(admin, path) for path in LISTS}
    owners = [path for path in LISTS if "forecast" not in path]
    known = {LISTS[path]: {one[LISTS[path]] for one in lists[path]} for path in owners}
    for records in lists.values():
        for record in records:
            for name in set(known) & set(record):
                assert record[name] is None or record[name] in known[name]


def test_invoices_add_up(admin: httpx.Client) -> None:
    for invoice in listed(admin, "/v2/invoices"):
        lines = invoice["lines"]
        assert sum(Decimal(one["amount"]) for one in lines) == Decimal(invoice["amount"])
        for one in lines:
            assert one["quantity"] * Decimal(one["unitPrice"]) == Decimal(one["amount"])
        unpaid = invoice["status"] in ("open", "overdue")
        assert invoice["amountDue"] == (invoice["amount"] if unpaid else "0.00")


def test_the_forecast_is_what_is_due_by_the_customers_own_methods(admin: httpx.Client) -> None:
    invoices = {one["invoiceId"]: one for one in listed(admin, "/v2/invoices")}
    methods = {one["paymentMethodId"]: one for one in listed(admin, "/v2/payment-methods")}
    for one in listed(admin, "/v2/autoprocessing/forecast"):
        invoice = invoices[one["invoiceId"]]
        assert one["amount"] == invoice["amountDue"] != "0.00"
        owner = methods[one["paymentMethodId"]]["customerId"]
        assert one["customerId"] == invoice["customerId"] == owner


def test_seeded_records_are_a_function_of_the_seed(merchants: Running) -> None:
    read = []
    for seed in ("7", "8"):
        options = ("--rate", "0", "--partners", "5", "--usage", "3", "--seed", seed)
        with started(*options) as running, running.client(key=API_KEY) as client:
            read.append([client.get(path).content for path in (*LISTS, *OBJECTS)])
    with key_client(merchants, "admin") as client:
        assert read[0] == [client.get(path).content for path in (*LISTS, *OBJECTS)]
    assert not set(read[0]) & set(read[1])
