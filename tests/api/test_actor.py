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


def test_an_api_key_stands_for_its_organization_else_its_fingerprint() -> None:
    host = "api.example.com:8443"
    assert actor.of_api_key(AT, "0f3a", "org-1") == f"{host} organization org-1"
    assert actor.of_api_key(AT, "0f3a") == f"{host} organization of key 0f3a"
