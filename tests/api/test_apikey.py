"""API keys: where they go, where they never go, and what they leave behind."""

import asyncio
import logging
from pathlib import Path

import httpx
import pytest

from pipelines.api import signature
from pipelines.api.apikey import ApiKey
from pipelines.api.token import ClientCredentials
from pipelines.errors import ConfigurationError
from pipelines.settings import Connection, Secret
from tests.virtual import CLOCK

KEY = "canary-key-51c0"
VARIABLE = "SHOP_KEY"


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)


def shop(host: str = "service", file: Path | None = None) -> Connection:
    secret = Secret(None if file else VARIABLE, file)
    return Connection("shop", f"https://{host}/gate", "", "", "", secret, "merchant")


def sent(auth: ApiKey, url: str, status: int = 200) -> list[str | None]:
    """Ask for something; return the key in every request that left."""
    keys: list[str | None] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers.get("x-api-key"))
        assert "authorization" not in request.headers
        return httpx.Response(status)

    async def main() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer), auth=auth) as http:
            await http.get(url)

    asyncio.run(main())
    return keys


PLACES = {
    "https://service/gate/v2/invoices": KEY,
    "https://SERVICE:443/gate/v2/invoices": KEY,
    "https://service.example/gate": None,
    "https://elsewhere/gate": None,
    "https://service:8443/gate": None,
    "http://service/gate": None,
}


@pytest.mark.parametrize(("url", "key"), PLACES.items())
def test_a_key_goes_to_its_own_service_only(url: str, key: str | None) -> None:
    assert sent(ApiKey(shop()), url) == [key]


def test_a_refused_key_is_not_tried_again() -> None:
    assert sent(ApiKey(shop()), "https://service/v2/invoices", 401) == [KEY]


def test_a_rotated_key_is_used_with_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    auth = ApiKey(shop())
    assert sent(auth, "https://service/") == [KEY]
    monkeypatch.setenv(VARIABLE, "another")
    assert sent(auth, "https://service/") == ["another"]


@pytest.mark.parametrize("key", [f"{KEY} x", f"{KEY}\nx", f"{KEY}é", f"{KEY}\x7f"])
def test_a_key_that_no_header_may_hold_is_refused_and_not_shown(tmp_path: Path, key: str) -> None:
    file = tmp_path / "key"
    file.write_text(key, encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(ConfigurationError) as caught:
        sent(ApiKey(shop(file=file)), "https://service/")
    assert "the API key of connection shop holds characters" in str(caught.value)
    assert KEY not in str(caught.value)


def test_a_fingerprint_tells_keys_apart_and_nothing_about_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, same = ApiKey(shop()).fingerprint(), ApiKey(shop()).fingerprint()
    elsewhere = ApiKey(shop("elsewhere")).fingerprint()
    monkeypatch.setenv(VARIABLE, "another")
    other = ApiKey(shop()).fingerprint()
    assert first == same
    assert len({first, elsewhere, other}) == 3
    assert len(first) == 16
    assert KEY not in first


def test_the_key_appears_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    auth = ApiKey(shop())
    sent(auth, "https://service/")
    assert KEY not in repr(auth) + repr(vars(auth)) + caplog.text


def test_each_surface_has_its_signature() -> None:
    partner = Connection("acme", "https://service", "https://id", "api", "us", Secret(VARIABLE))
    assert isinstance(signature.of(partner, CLOCK), ClientCredentials)
    assert isinstance(signature.of(shop(), CLOCK), ApiKey)
    assert signature.of(shop(), CLOCK).claims() == {}
