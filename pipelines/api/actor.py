"""Whose budget it is: the key of an actor, the same for every process that asks as that actor.

From the first signed request on: a token has its claims by then. Where several clients or keys
share an actor only a person knows it, and names it in the setting `budget_key`.
"""

from collections.abc import Mapping

import httpx


def of_token(address: str, claims: Mapping[str, object], client_id: str) -> str:
    """Return the key of a token's actor: host, kind of actor, subject (else the client)."""
    kind = claims.get("actor") or "client"
    return f"{_host(address)} {kind} {claims.get('sub') or client_id}"


def of_api_key(address: str, fingerprint: str, organization: str | None = None) -> str:
    """Return the key of an API key's actor: its organization, where known, else its fingerprint."""
    return f"{_host(address)} organization {organization or 'of key ' + fingerprint}"


def _host(address: str) -> str:
    return httpx.URL(address).netloc.decode("ascii")
