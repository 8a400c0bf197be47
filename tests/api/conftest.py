"""What every test of the client has: a secret to look for, and proxies that must not be used."""

import pytest

SECRET = "canary-51d07e"


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """Set a secret and proxies; return the secret."""
    monkeypatch.setenv("PARTNER_SYNC_CLIENT_SECRET", SECRET)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    return SECRET
