"""Credentials in the environment."""

import pytest

from tests.http.support import API_KEY, KEY_VARIABLE, SECRET


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_TEST_SECRET", SECRET)
    monkeypatch.setenv(KEY_VARIABLE, API_KEY)
