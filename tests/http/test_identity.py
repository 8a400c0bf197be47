"""Who a connection is: what lasts of whoami, and the actor whose rate limit is counted."""

from typing import Any

import httpx
import pytest

from pipelines.core.errors import Forbidden
from pipelines.http.identity import actor_key, service_identity
from sandbox.clients import Client
from sandbox.data.sizes import Sizes
from sandbox.options import Limits, Options
from sandbox.service import create_app
from tests.http.support import API_KEY, BASE_URL, SECRET, HandClock, Harness, merchant, partner

# whoami, and what of it makes up the identity.
ANSWERS: list[tuple[dict[str, Any], dict[str, str | int]]] = [
    ({"actor": "partner", "partnerId": "p1"}, {"actor": "partner", "partnerId": "p1"}),
    ({"account": {"id": 7, "name": "A"}}, {"account.id": 7, "account.name": "A"}),
    ({"id": True, "count": 9, "name": None, "list": ["a"]}, {}),
    ({"scopes": ["a"], "scope": "x", "permission": "y", "apiVersion": "2"}, {}),
    ({"issuedAt": "x", "iat": 1, "requestId": "r", "trace_id": "t", "sessionId": "s"}, {}),
    ({"since": "2026-11-24T10:00:00Z", "sku": "2026-11-24x"}, {"sku": "2026-11-24x"}),
    ({"Token": {"id": "t"}, "owner": {"id": "o"}}, {"owner.id": "o"}),
]


@pytest.mark.parametrize(("whoami", "members"), ANSWERS)
def test_what_lasts(whoami: dict[str, Any], members: dict[str, Any]) -> None:
    assert service_identity(partner(), whoami, {}) == members


def test_what_stands_in_for_an_answer_that_says_nothing() -> None:
    claims = {"actor": "partner", "sub": "demo", "exp": 1}
    assert service_identity(partner(), {}, claims) == {"actor": "partner", "sub": "demo"}
    assert service_identity(merchant(), {}, {}) == {"connection": "shop"}
    assert str(service_identity(partner(), {}, {})) == "unnamed"
    assert str(service_identity(partner(), {"name": "\x1b[2J" * 500}, {})).isprintable()


def test_a_message_says_what_changed_as_it_may_be_a_new_name_only() -> None:
    account = service_identity(partner(), {"partnerId": "p1", "name": "New", "rank": "b"}, {})
    before = {"partnerId": "p1", "name": "Old", "region": "eu"}
    assert account.change_since(before) == (
        "name was Old and is New, rank was not stated and is b, region was eu and is not stated"
    )


CLIENTS = (
    Client("demo", SECRET, "distributor"),
    Client("reseller", SECRET, "partner"),
    Client("merchant", SECRET, "organization"),
    Client("narrow", SECRET, "distributor", ("partners:read",)),
)


def test_the_words_of_the_sandbox_are_understood() -> None:
    sizes, limits = Sizes(25, 100, 50), Limits(rate=0)
    options = Options(clients=CLIENTS, base_url=BASE_URL, sizes=sizes, limits=limits)
    transport = httpx.ASGITransport(create_app(options, HandClock()))
    clients = [Harness(partner(client_id=each.id), transport) for each in CLIENTS]
    assert clients[0].page().status == 200
    for harness, words in zip(clients[2:], ("actor type", "scope"), strict=True):
        with pytest.raises(Forbidden, match=words):
            harness.page()
    found = []
    for harness in (clients[0], *clients[:2]):
        whoami = harness.run(lambda client: client.read_object("/v2/whoami"))
        found.append(service_identity(harness.connection, whoami, {}))
    assert found[0] == found[1] != found[2]
    assert [each["actor"] for each in found] == ["distributor", "distributor", "partner"]
    assert "demo" in str(found[0])


def test_the_actor_is_a_setting_an_identity_or_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = {"id": "p1"}
    key = actor_key(merchant(), None)
    monkeypatch.setenv("HTTP_TEST_KEY", "another-key-4711")
    actors = [
        actor_key(partner(rate_limit_key="shared"), pinned),
        actor_key(partner(), pinned),
        actor_key(partner(), {"id": "p2"}),
        actor_key(partner("http://localhost:1"), pinned),
        actor_key(partner(), None),
        actor_key(partner(client_id="second"), None),
        actor_key(merchant(), None),
        key,
    ]
    assert len(set(actors)) == len(actors)
    assert actor_key(partner(client_id="second"), pinned) == actors[1]
    assert actor_key(merchant(), {"connection": "shop"}) == actors[-2]
    assert API_KEY not in key
