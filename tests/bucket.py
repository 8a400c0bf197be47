"""Fixtures of a real bucket: an S3 server, one for each worker, and a prefix for each test.

Fixtures:
    bucket_server: the server, which runs until the last test of the process.
    bucket: an empty prefix on it; the environment has the credentials.
"""

from collections.abc import Iterator

import pytest

from pipelines.files.bucket import Bucket
from tests.s3_server import SETTINGS, BucketServer, started_bucket


@pytest.fixture(scope="session")
def bucket_server() -> Iterator[BucketServer]:
    with started_bucket() as server:
        yield server


@pytest.fixture
def bucket(bucket_server: BucketServer, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    return bucket_server.bucket()
