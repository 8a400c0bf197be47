"""The key of an actor: the same for all who are one actor to the service, and no secret in it."""

import pytest

from pipelines.api import actor

AT = "https://api.example.com:8443/v2"
TOKENS = [
    ({"actor": "partner", "sub": "us@clients"}, "api.example.com:8443 partner us@clients"),
    ({"actor": "partner"}, "api.example.com:8443 partner me"),
    ({}, "api.example.com:8443 client me"),
]


@pytest.mark.parametrize(("claims", "key"), TOKENS)
def test_a_token_names_its_actor(claims: dict[str, str], key: str) -> None:
    assert actor.of_token(AT, claims, "me") == key


def test_an_api_key_stands_for_its_organization_and_is_not_told() -> None:
    assert actor.of_api_key(AT, "secret-key", "org-1") == "api.example.com:8443 organization org-1"
    unnamed = actor.of_api_key(AT, "secret-key")
    assert unnamed.startswith("api.example.com:8443 organization of key ")
    assert "secret" not in unnamed
    assert unnamed != actor.of_api_key(AT, "another-key")
