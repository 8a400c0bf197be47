"""What an API key may write: real changes, validated, of its own organization, kept in a store.

Not here: who is let in (test_keys), bodies that are hostile (test_hostile).
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.sandbox.merchants import assert_problem, key_client, keys_file, listed
from tests.sandbox.running import Running, command, started
from tests.sandbox.schema import faults

UNKNOWN = "0" * 24
JSON = {"Content-Type": "application/json"}
LONG = "x" * 2001
# What is created at which path by which body, and the field of its identifier.
CREATED = [
    ("{customer}/notes", {"text": "a\n«né» 💶"}, "noteId"),
    ("{note}/replies", {"text": "b"}, "replyId"),
    ("/v2/payment-links/unapplied", {"customerId": "{id}", "amount": "0.01"}, "paymentLinkId"),
    ("/v2/payment-links/applied", {"invoiceIds": ["{due}"]}, "paymentLinkId"),
    (
        "/v2/payment-method-requests",
        {"customerId": "{id}", "kinds": ["card", "bank_account"], "expiresInDays": 365},
        "paymentMethodRequestId",
    ),
]
# Bodies that are refused, and the fields that the problem names.
REFUSED: list[tuple[str, str, Any, list[str]]] = [
    ("POST", "{customer}/notes", {}, ["text"]),
    ("POST", "{customer}/notes", {"text": ""}, ["text"]),
    ("POST", "{customer}/notes", {"text": " \n"}, ["text"]),
    ("POST", "{customer}/notes", {"text": LONG}, ["text"]),
    ("POST", "{customer}/notes", {"text": 7}, ["text"]),
    ("POST", "{customer}/notes", {"text": "a", "author": "me"}, ["author"]),
    ("POST", "{customer}/notes", [], [""]),
    ("POST", "{customer}/notes", None, [""]),
    ("POST", "{note}/replies", {"text": None}, ["text"]),
    ("PATCH", "{note}", {"status": "open"}, ["text", "status"]),
    ("PUT", "{note}/status", {"status": "closed"}, ["status"]),
    ("PUT", "{customer}/alert", {"message": "a"}, ["severity"]),
    ("PUT", "{customer}/alert", {"message": "a", "severity": "loud"}, ["severity"]),
    ("POST", "/v2/payment-links/unapplied", {"customerId": "x"}, ["customerId", "amount"]),
    *(
        ("POST", "/v2/payment-links/unapplied", {"customerId": UNKNOWN, "amount": one}, ["amount"])
        for one in ("0.00", "1", "1.5", "01.00", "-1.00", "1.00\n", "1e2", "\u0661.00", 1.5)
    ),
    ("POST", "/v2/payment-links/applied", {"invoiceIds": []}, ["invoiceIds"]),
    ("POST", "/v2/payment-links/applied", {"invoiceIds": 2 * [UNKNOWN]}, ["invoiceIds"]),
    ("POST", "/v2/payment-links/applied", {"invoiceIds": ["x"]}, ["invoiceIds.0"]),
    (
        "POST",
        "/v2/payment-method-requests",
        {"customerId": UNKNOWN, "kinds": ["cash"], "expiresInDays": 0},
        ["kinds.0", "expiresInDays"],
    ),
]
MISSING = [
    ("GET", "/v2/customers/{0}/notes", None),
    ("POST", "/v2/customers/{0}/notes", {"text": "a"}),
    ("GET", "{customer}/notes/{0}", None),
    ("PATCH", "{customer}/notes/{0}", {"text": "a"}),
    ("PUT", "{customer}/notes/{0}/status", {"status": "open"}),
    ("DELETE", "{customer}/notes/{0}", None),
    ("GET", "{customer}/notes/{0}/replies", None),
    ("POST", "{customer}/notes/{0}/replies", {"text": "a"}),
    ("GET", "{note}/replies/{0}", None),
    ("DELETE", "{note}/replies/{0}", None),
    ("PUT", "/v2/customers/{0}/alert", {"message": "a", "severity": "info"}),
    ("POST", "/v2/payment-links/unapplied", {"customerId": UNKNOWN, "amount": "1.00"}),
    ("POST", "/v2/payment-links/applied", {"invoiceIds": [UNKNOWN]}),
    ("GET", "/v2/payment-links/unapplied/{0}", None),
    ("GET", "/v2/payment-links/applied/{0}", None),
    ("POST", "/v2/payment-method-requests", {"customerId": UNKNOWN, "kinds": ["card"]}),
    ("GET", "/v2/payment-method-requests/{0}", None),
]


@pytest.fixture(scope="module")
def filled(admin: httpx.Client) -> Callable[[Any], Any]:
    """Give what fills the braces of paths and bodies: a customer, its note, what is due."""
    customer = listed(admin, "/v2/customers")[0]["customerId"]
    path = f"/v2/customers/{customer}"
    note = admin.post(f"{path}/notes", json={"text": "for replies"}).json()["noteId"]
    invoices = listed(admin, "/v2/invoices")
    due = next(one["invoiceId"] for one in invoices if one["amountDue"] != "0.00")
    words = {"customer": path, "id": customer, "note": f"{path}/notes/{note}", "due": due}

    def fill(thing: Any) -> Any:
        if isinstance(thing, dict):
            return {name: fill(one) for name, one in thing.items()}
        if isinstance(thing, list):
            return [fill(one) for one in thing]
        return thing.format(UNKNOWN, **words) if isinstance(thing, str) else thing

    return fill


@pytest.mark.parametrize("row", CREATED)
def test_what_is_created_can_be_got_where_it_says(
    merchants: Running, admin: httpx.Client, filled: Callable[[Any], Any], row: Any
) -> None:
    path, body, name = filled(row[0]), filled(row[1]), row[2]
    answer = admin.post(path, json=body)
    assert answer.status_code == 201
    record = answer.json()
    assert answer.headers["location"] == f"{path}/{record[name]}"
    assert {field: record.get(field, ...) for field in body if field != "expiresInDays"} == {
        field: value for field, value in body.items() if field != "expiresInDays"
    }
    assert admin.get(answer.headers["location"]).json() == record
    with key_client(merchants, "other") as other:
        assert_problem(other.get(answer.headers["location"]), 404)
    described = admin.get("/docs/openapi.json").json()
    kind = {"noteId": "CustomerNote", "replyId": "NoteReply", "paymentLinkId": "PaymentLink"}
    schema = f"#/components/schemas/{kind.get(name, 'PaymentMethodRequest')}"
    assert list(faults(described, {"$ref": schema}, record)) == []


@pytest.mark.parametrize("row", REFUSED)
def test_a_wrong_body_is_400_and_names_each_field(
    admin: httpx.Client, filled: Callable[[Any], Any], row: Any
) -> None:
    method, path, body, fields = row
    answer = admin.request(method, filled(path), content=json.dumps(body), headers=JSON)
    problem = assert_problem(answer, 400)
    assert [one["field"] for one in problem["errors"]] == fields
    assert {one["in"] for one in problem["errors"]} == {"body"}


@pytest.mark.parametrize(("method", "path", "body"), MISSING)
def test_what_is_not_there_is_404(
    admin: httpx.Client, filled: Callable[[Any], Any], method: str, path: str, body: Any
) -> None:
    assert_problem(admin.request(method, filled(path), json=body), 404)


@pytest.mark.parametrize(("method", "path", "body"), MISSING)
def test_what_is_another_organizations_is_404(
    merchants: Running, filled: Callable[[Any], Any], method: str, path: str, body: Any
) -> None:
    mine = path.replace("{customer}/notes/{0}", "{note}").replace("{0}", filled("{id}"))
    with key_client(merchants, "other") as other:
        assert_problem(other.request(method, filled(mine), json=body), 404)


def test_notes_change_and_go_with_their_replies(
    admin: httpx.Client, filled: Callable[[Any], Any]
) -> None:
    notes = filled("{customer}/notes")
    before = listed(admin, notes)
    note = admin.post(notes, json={"text": "first"}).json()
    path = f"{notes}/{note['noteId']}"
    assert (note["status"], note["author"]) == ("open", "anna")
    assert admin.patch(path, json={"text": "second"}).json()["text"] == "second"
    resolved = admin.put(f"{path}/status", json={"status": "resolved"}).json()
    assert resolved | {"updatedAt": ""} == note | {
        "text": "second",
        "status": "resolved",
        "updatedAt": "",
    }
    assert listed(admin, notes) == [*before, resolved]
    replies = [admin.post(f"{path}/replies", json={"text": str(n)}).json() for n in range(25)]
    assert listed(admin, f"{path}/replies", 10) == replies
    gone = f"{path}/replies/{replies[3]['replyId']}"
    assert (admin.delete(gone).status_code, admin.delete(gone).status_code) == (204, 404)
    assert listed(admin, f"{path}/replies") == replies[:3] + replies[4:]
    assert admin.delete(path).status_code == 204
    for method in ("GET", "DELETE"):
        assert_problem(admin.request(method, path), 404)
    assert_problem(admin.get(f"{path}/replies/{replies[0]['replyId']}"), 404)
    assert listed(admin, notes) == before


def test_a_customer_has_one_alert_or_none(
    admin: httpx.Client, filled: Callable[[Any], Any]
) -> None:
    path = filled("{customer}/alert")
    admin.delete(path)
    assert_problem(admin.get(path), 404)
    for status, message in ((201, "first"), (200, "second")):
        answer = admin.put(path, json={"message": message, "severity": "warning"})
        assert answer.status_code == status
        assert admin.get(path).json() == answer.json()
        assert answer.json()["message"] == message
    assert admin.delete(path).status_code == 204
    assert_problem(admin.delete(path), 404)


def test_an_applied_link_is_over_what_is_due_of_one_customer(admin: httpx.Client) -> None:
    invoices = listed(admin, "/v2/invoices")
    due = [one for one in invoices if one["amountDue"] != "0.00"]
    paid = next(one for one in invoices if one["amountDue"] == "0.00")
    first = due[0]
    same = [one for one in due if one["customerId"] == first["customerId"]]
    other = next(one for one in due if one["customerId"] != first["customerId"])
    path = "/v2/payment-links/applied"
    ids = [one["invoiceId"] for one in same]
    link = admin.post(path, json={"invoiceIds": ids}).json()
    cents = sum(int(one["amountDue"].replace(".", "")) for one in same)
    assert link["amount"].replace(".", "").lstrip("0") == str(cents)
    assert link["customerId"] == first["customerId"]
    for wrong in ([first["invoiceId"], other["invoiceId"]], [paid["invoiceId"]]):
        assert_problem(admin.post(path, json={"invoiceIds": wrong}), 409)


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_that_is_not_json_is_415(
    admin: httpx.Client, filled: Callable[[Any], Any], media_type: str
) -> None:
    headers = {"Content-Type": media_type}
    answer = admin.post(filled("{customer}/notes"), content=b'{"text": "a"}', headers=headers)
    assert_problem(answer, 415)


def test_a_405_names_every_method_of_the_path(
    admin: httpx.Client, filled: Callable[[Any], Any]
) -> None:
    expected = {"{customer}/notes": "GET, POST", "{note}": "DELETE, GET, PATCH"}
    for path, methods in expected.items():
        answer = admin.put(filled(path))
        assert_problem(answer, 405)
        assert answer.headers["allow"] == methods


def written_and_killed(options: tuple[str, ...], expected: dict[str, Any]) -> None:
    """Write, then kill the process; ``started`` complains that it did not end by itself."""
    with started(*options) as running:
        with key_client(running, "admin") as client:
            customer = listed(client, "/v2/customers")[0]["customerId"]
            path = f"/v2/customers/{customer}/notes"
            client.delete(f"{path}/{listed(client, path)[0]['noteId']}")
            expected[path] = [client.post(path, json={"text": one}).json() for one in "ab"]
            path = "/v2/payment-method-requests"
            expected[path] = listed(client, path)
            body = {"customerId": customer, "kinds": ["card"]}
            expected[path].append(client.post(path, json=body).json())
        os.kill(running.process.pid, signal.SIGKILL)
        running.process.wait(5)


def test_writes_outlive_a_killed_process(tmp_path: Path) -> None:
    store, expected = tmp_path / "store.sqlite", dict[str, Any]()
    where = ("--clients", keys_file(tmp_path), "--store", str(store))
    options = ("--rate", "0", "--usage", "1", *where)
    with pytest.raises(AssertionError):
        written_and_killed(options, expected)
    with started(*options) as running, key_client(running, "admin") as client:
        assert {path: listed(client, path) for path in expected} == expected
    assert len(expected) == 2


def test_without_a_store_everything_begins_anew(tmp_path: Path) -> None:
    options = ("--rate", "0", "--usage", "1", "--clients", keys_file(tmp_path))
    counts = []
    for _ in range(2):
        with started(*options) as running, key_client(running, "admin") as client:
            path = f"/v2/customers/{listed(client, '/v2/customers')[0]['customerId']}/notes"
            client.post(path, json={"text": "a"})
            counts.append(len(listed(client, path)))
    assert counts == [2, 2]


def test_a_store_of_another_seed_or_no_store_at_all_is_refused(tmp_path: Path) -> None:
    store, text = tmp_path / "store.sqlite", tmp_path / "text"
    text.write_text("no database" * 100, encoding="utf-8")
    with started("--usage", "1", "--store", str(store)):
        pass
    for options, reason in (
        (("--seed", "8", "--store", str(store)), "belongs to seed 7"),
        (("--store", str(text)), "cannot be used"),
        (("--store", str(tmp_path / "no" / "folder")), "cannot be used"),
    ):
        ended = subprocess.run(
            command("--port", "0", *options), capture_output=True, text=True, check=False
        )
        assert ended.returncode == 2
        assert reason in " ".join(ended.stderr.replace("│", " ").split())
        assert "Traceback" not in ended.stderr
