"""HTTPS with a private authority: `ca_file` is what makes a sync trust it, and nothing else does.

Not here: which certificates the service presents (sandbox/test_tls).
"""

import re
from collections.abc import Iterator

import pytest

from pipelines import run
from pipelines.cli.sandbox import Service
from tests.end_to_end.conftest import Point
from tests.sandbox.running import AUDIENCE, SECRET, Running, started


@pytest.fixture(scope="module")
def secure() -> Iterator[Running]:
    """Serve HTTPS, so few rows that one page holds each list."""
    sizes = ("--partners=5", "--usage=300", "--billing=30")
    with started("--tls", "--rate=1000", *sizes) as running:
        yield running


def synced(secure: Running, point: Point, ca_file: str) -> run.Outcome:
    environment = {
        "PARTNER_SYNC_BASE_URL": secure.url,
        "PARTNER_SYNC_AUTH_URL": secure.url,
        "PARTNER_SYNC_AUDIENCE": AUDIENCE,
        "PARTNER_SYNC_CLIENT_ID": "demo",
        "PARTNER_SYNC_CLIENT_SECRET": SECRET,
        "PARTNER_SYNC_CA_FILE": ca_file,
    }
    with run.open(point(Service(secure.url, environment))) as session:
        return run.sync(session, run.orders(session))


def test_a_sync_that_trusts_the_authority_reads_everything(secure: Running, point: Point) -> None:
    named = re.search(r"authority in (\S+),", secure.line)
    assert named
    outcome = synced(secure, point, named[1])
    assert outcome.exit_code == 0
    assert secure.statistics()["requests"]["/v2/usage"] == {"200": 1}


def test_a_sync_without_it_says_what_to_set(secure: Running, point: Point) -> None:
    outcome = synced(secure, point, "")
    assert outcome.exit_code == 2  # a setting is missing
    for stream in outcome.streams:
        assert "certificate of 127.0.0.1 not trusted" in str(stream.error)
        assert "set ca_file" in str(stream.error)
