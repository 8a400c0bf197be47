"""Chapter 4 of the interface, "Other operations implied by access scopes": each is there.

Their methods, paths and payloads are not shown; those below are the sandbox's assumption.
"""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.interface.calling import Surfaces, assert_problem
from tests.interface.routes import SHOWN
from tests.sandbox.merchants import SECRETS

NOTES = "/v2/customers/{customerId}/notes"
NOTE = NOTES + "/{noteId}"
REQUESTS = "/v2/payment-method-requests"
# The operation in the document's words: the scope that guards it, method, path.
READS = {
    "gateways": ("gateways:read", "/v2/gateways"),
    "invoices": ("invoices:read", "/v2/invoices"),
    "customers": ("customers:read", "/v2/customers"),
    "saved payment methods": ("payment-methods:read", "/v2/payment-methods"),
    "settings": ("settings:read", "/v2/settings"),
    "transactions": ("transactions:read", "/v2/transactions"),
    "users": ("users:read", "/v2/users"),
    "emails": ("emails:read", "/v2/emails"),
    "autoprocessing forecast": ("autoprocessing:read", "/v2/autoprocessing/forecast"),
    "organization profile": ("profile:read", "/v2/profile"),
}
CREATE, UPDATE, DELETE = (f"customer-notes:{verb}" for verb in ("create", "update", "delete"))
GUARDS = {
    "create notes": (CREATE, "post", NOTES),
    "create replies": (CREATE, "post", NOTE + "/replies"),
    "update notes": (UPDATE, "patch", NOTE),
    "update their status": (UPDATE, "put", NOTE + "/status"),
    "update customer alerts": (UPDATE, "put", "/v2/customers/{customerId}/alert"),
    "delete notes": (DELETE, "delete", NOTE),
    "delete replies": (DELETE, "delete", NOTE + "/replies/{replyId}"),
    "delete customer alerts": (DELETE, "delete", "/v2/customers/{customerId}/alert"),
    "create unapplied links": ("payment-links:create", "post", "/v2/payment-links/unapplied"),
    "create applied links": ("payment-links:create", "post", "/v2/payment-links/applied"),
    "create requests": ("payment-method-requests:create", "post", REQUESTS),
    "list requests": ("payment-method-requests:read", "get", REQUESTS),
    "get requests": (
        "payment-method-requests:read",
        "get",
        REQUESTS + "/{paymentMethodRequestId}",
    ),
}


@pytest.fixture
def customer(whole: Surfaces) -> Iterator[str]:
    """The path of a customer of an organization that no other test writes to."""
    with whole.running.client(key=SECRETS["other"]) as client:
        yield f"/v2/customers/{client.get('/v2/customers').json()['data'][0]['customerId']}"


@pytest.fixture
def writer(whole: Surfaces) -> Iterator[httpx.Client]:
    """The key of that organization."""
    with whole.running.client(key=SECRETS["other"]) as client:
        yield client


def done(answer: httpx.Response, status: int) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


@pytest.mark.parametrize("what", READS)
def test_4_19_merchants_can_read(whole: Surfaces, what: str) -> None:
    scope, path = READS[what]
    assert whole.page(path)
    access = whole.operation("get", path)["x-access"]
    assert access["scope"] == f"organizations:{scope}"


@pytest.mark.parametrize("what", GUARDS)
def test_4_20_each_operation_is_guarded_by_its_scope(whole: Surfaces, what: str) -> None:
    scope, method, path = GUARDS[what]
    access = whole.operation(method, path)["x-access"]
    assert access == {"scope": f"organizations:{scope}", "mappings": ["companyAdmin"]}
    with whole.running.client(key=SECRETS["nothing"]) as client:
        assert_problem(client.request(method, path), 403)


def test_4_21_notes_and_replies_are_created(writer: httpx.Client, customer: str) -> None:
    note = done(writer.post(f"{customer}/notes", json={"text": "A"}), 201)
    path = f"{customer}/notes/{note['noteId']}"
    reply = done(writer.post(f"{path}/replies", json={"text": "B"}), 201)
    assert done(writer.get(path), 200) == note
    assert done(writer.get(f"{path}/replies"), 200)["data"] == [reply]


def test_4_22_notes_their_status_and_alerts_are_updated(
    writer: httpx.Client, customer: str
) -> None:
    note = done(writer.post(f"{customer}/notes", json={"text": "A"}), 201)
    path = f"{customer}/notes/{note['noteId']}"
    assert done(writer.patch(path, json={"text": "B"}), 200)["text"] == "B"
    closed = {"status": "resolved"}
    assert done(writer.put(f"{path}/status", json=closed), 200)["status"] == "resolved"
    found = done(writer.get(path), 200)
    assert (found["text"], found["status"]) == ("B", "resolved")
    alert = {"message": "C", "severity": "info"}
    assert writer.put(f"{customer}/alert", json=alert).is_success
    assert done(writer.get(f"{customer}/alert"), 200)["message"] == "C"


def test_4_23_notes_replies_and_alerts_are_deleted(writer: httpx.Client, customer: str) -> None:
    note = done(writer.post(f"{customer}/notes", json={"text": "A"}), 201)
    path = f"{customer}/notes/{note['noteId']}"
    reply = done(writer.post(f"{path}/replies", json={"text": "B"}), 201)
    writer.put(f"{customer}/alert", json={"message": "C", "severity": "info"})
    for gone in (f"{path}/replies/{reply['replyId']}", path, f"{customer}/alert"):
        done(writer.delete(gone), 204)
        assert_problem(writer.get(gone), 404)


def test_4_24_payment_links_are_created_unapplied_and_applied(
    writer: httpx.Client, customer: str
) -> None:
    body: dict[str, Any] = {"customerId": customer.rpartition("/")[2], "amount": "12.50"}
    unapplied = done(writer.post("/v2/payment-links/unapplied", json=body), 201)
    invoices = done(writer.get("/v2/invoices?limit=100"), 200)["data"]
    due = next(one for one in invoices if one["amountDue"] != "0.00")
    body = {"invoiceIds": [due["invoiceId"]]}
    applied = done(writer.post("/v2/payment-links/applied", json=body), 201)
    assert (unapplied["kind"], unapplied["amount"]) == ("unapplied", "12.50")
    assert (applied["kind"], applied["amount"]) == ("applied", due["amountDue"])


def test_4_25_payment_method_requests_are_created_listed_and_got(
    writer: httpx.Client, customer: str
) -> None:
    body = {"customerId": customer.rpartition("/")[2], "kinds": ["card"]}
    made = done(writer.post(REQUESTS, json=body), 201)
    assert made in done(writer.get(f"{REQUESTS}?limit=100"), 200)["data"]
    assert done(writer.get(f"{REQUESTS}/{made['paymentMethodRequestId']}"), 200) == made


def test_4_26_their_methods_paths_and_payloads_are_assumed(whole: Surfaces) -> None:
    paths = whole.described()["paths"]
    operations = [(GUARDS[one][1], GUARDS[one][2]) for one in GUARDS]
    operations += [("get", path) for _, path in READS.values() if path not in SHOWN]
    operations += [("get", "/v2/plans"), ("get", "/v2/organizations")]
    assert all(paths[path][method]["x-assumed"] for method, path in operations)
    schemas = whole.described()["components"]["schemas"]
    bodies = [schema for name, schema in schemas.items() if name.endswith("Body")]
    assert len(bodies) == 7
    for body in bodies:
        assert all(one["x-assumed"] for one in body["properties"].values())
