"""With HOMES=bucket in the environment, each home is on a bucket, and its database on a server."""

import os

import pytest


@pytest.fixture(autouse=os.environ.get("HOMES") == "bucket")
def home_on_bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = request.getfixturevalue("bucket")
    monkeypatch.setenv("PARTNER_SYNC_FILES", bucket.url)
    monkeypatch.setenv("PARTNER_SYNC_FILES_ENDPOINT", bucket.endpoint)
    monkeypatch.setenv("PARTNER_SYNC_METADATA_URL", request.getfixturevalue("server_url"))
