"""Rehearsals: dates are shifted for services of this machine only, and by a time that is clear."""

import os
from datetime import date
from pathlib import Path

import pytest

from pipelines import settings
from pipelines.errors import ConfigurationError

PREFIX = "PARTNER_SYNC_"
REQUIRED = ("BASE_URL", "AUTH_URL", "AUDIENCE", "CLIENT_ID")
HERE, AWAY = "http://127.0.0.1:8010", "https://api.example.com"
# Address of the service, of the identity provider, a merchant's beside it; who is refused.
REHEARSALS = [
    ((HERE, HERE), None, None),
    ((HERE, AWAY), None, "default"),
    ((AWAY, HERE), None, "default"),
    ((HERE, HERE), AWAY, "shop"),
    ((HERE, HERE), "https://localhost:8443", None),
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and no setting of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(PREFIX + "HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize(("addresses", "merchant", "refused"), REHEARSALS)
def test_dates_are_shifted_for_services_of_this_machine_only(
    monkeypatch: pytest.MonkeyPatch,
    addresses: tuple[str, str],
    merchant: str | None,
    refused: str | None,
) -> None:
    base, auth = addresses
    for name, value in zip(REQUIRED, (base, auth, "api", "us"), strict=True):
        monkeypatch.setenv(PREFIX + name, value)
    if merchant:
        shop = {"surface": "merchant", "base_url": merchant, "secret": "SHOP_KEY"}
        settings.load().add_connection("shop", shop)
    monkeypatch.setenv(PREFIX + "NOW", "2026-11-20T02:00:00Z")
    if refused is None:
        assert settings.load().clock.now().date() == date(2026, 11, 20)
        return
    with pytest.raises(ConfigurationError, match=f"the service of {refused} is not on this"):
        settings.load()


@pytest.mark.parametrize("text", ["2026-11-20", "2026-11-20T02:00:00", "yesterday"])
def test_a_time_without_its_offset_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(PREFIX + "NOW", text)
    with pytest.raises(ConfigurationError, match="PARTNER_SYNC_NOW"):
        settings.load()
