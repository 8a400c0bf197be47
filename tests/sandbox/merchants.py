"""A sandbox with keys of several organizations, as the merchant surface's tests share it.

Here: who the keys are, and short ways to call with one. Not here: what is expected of them.
"""

from pathlib import Path
from typing import Any

import httpx

from tests.sandbox.running import CLIENTS, Running, clients_file

# Organizations 0 to 3 of seed 7 are active; 4 is in its trial.
KEYS = """
[[keys]]
id = "admin"
key = "key-of-the-admin"
organization = 0
login = "anna"

[[keys]]
id = "second"
key = "key-of-the-same-login"
organization = 0
login = "anna"

[[keys]]
id = "profiles"
key = "key-of-profiles"
organization = 0
login = "otto"
mappings = ["manageProfiles"]

[[keys]]
id = "nothing"
key = "key-of-nothing"
organization = 0
login = "nils"
mappings = []

[[keys]]
id = "other"
key = "key-of-another-organization"
organization = 1
login = "berta"

[[keys]]
id = "support"
key = "key-of-support"
organization = 2
login = "sam"
internal = true

[[keys]]
id = "gated"
key = "key-of-the-gated"
organization = 2
login = "gerda"

[[keys]]
id = "revocable"
key = "key-to-be-revoked"
organization = 3
login = "rosa"

[[keys]]
id = "trying"
key = "key-on-trial"
organization = 4
login = "tilda"
"""
CUSTOMER = "/v2/customers/{customerId}"
NOTE = CUSTOMER + "/notes/{noteId}"
# Conventional paths for what the interface names and does not show.
MERCHANT_PATHS = {
    "/v2/customers",
    CUSTOMER,
    CUSTOMER + "/alert",
    CUSTOMER + "/notes",
    NOTE,
    NOTE + "/status",
    NOTE + "/replies",
    NOTE + "/replies/{replyId}",
    "/v2/payment-methods",
    "/v2/payment-links/unapplied",
    "/v2/payment-links/unapplied/{paymentLinkId}",
    "/v2/payment-links/applied",
    "/v2/payment-links/applied/{paymentLinkId}",
    "/v2/payment-method-requests",
    "/v2/payment-method-requests/{paymentMethodRequestId}",
    "/v2/settings",
    "/v2/transactions",
    "/v2/users",
    "/v2/emails",
    "/v2/autoprocessing/forecast",
    "/v2/profile",
}
SECRETS = {
    "admin": "key-of-the-admin",
    "second": "key-of-the-same-login",
    "profiles": "key-of-profiles",
    "nothing": "key-of-nothing",
    "other": "key-of-another-organization",
    "support": "key-of-support",
    "gated": "key-of-the-gated",
    "revocable": "key-to-be-revoked",
    "trying": "key-on-trial",
}


def keys_file(folder: Path) -> str:
    """Write a clients file that has keys too; gives its path."""
    return str(clients_file(folder, CLIENTS + KEYS))


def key_client(running: Running, key_id: str) -> httpx.Client:
    """Give a client that calls with one of the keys."""
    return running.client(key=SECRETS[key_id])


def listed(client: httpx.Client, path: str, limit: int = 100) -> list[Any]:
    """Read a whole list by its next_offset."""
    found: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        params = {"limit": limit, "offset": offset}
        page = client.get(path, params=params).raise_for_status().json()
        found += page["data"]
        offset = page["pagination"]["next_offset"]
    return found


def assert_problem(answer: httpx.Response, status: int) -> Any:
    """Insist on a problem of this status; gives its body."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert set(problem) >= {"type", "title", "status", "detail", "instance"}
    assert problem["status"] == status
    return problem
