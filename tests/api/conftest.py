"""What tests of the client have: a secret to look for, proxies not to use, a ledger to share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests import ledgers

SECRET = "canary-51d07e"


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """Set a secret and proxies; return the secret."""
    monkeypatch.setenv("PARTNER_SYNC_CLIENT_SECRET", SECRET)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    return SECRET


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Engine]:
    """Yield a ledger of the test's own."""
    engine = ledgers.opened(tmp_path)
    yield engine
    engine.dispose()
