"""HTTPS with a certificate made at start: who trusts its authority may talk, and nobody else."""

import re
import socket
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.sandbox.running import Running, started


@pytest.fixture(scope="module")
def secure() -> Iterator[Running]:
    """A sandbox that serves HTTPS, with so few rows that one page holds each list."""
    with started(
        "--tls", "--rate", "1000", "--partners", "5", "--usage", "300", "--billing", "30"
    ) as running:
        yield running


def authority(running: Running) -> Path:
    named = re.search(r"authority in (\S+),", running.line)
    assert named, running.line
    return Path(named[1])


def test_the_ready_line_names_the_address_and_the_authority(secure: Running) -> None:
    assert secure.url.startswith("https://127.0.0.1:")
    assert b"BEGIN CERTIFICATE" in authority(secure).read_bytes()
    assert b"PRIVATE KEY" not in authority(secure).read_bytes()
    assert stat.S_IMODE(authority(secure).stat().st_mode) == 0o600


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_who_trusts_the_authority_talks_under_strict_rules(secure: Running, host: str) -> None:
    context = ssl.create_default_context(cafile=authority(secure))
    context.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    port = int(secure.url.rsplit(":", 1)[1])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=5) as line,
        context.wrap_socket(line, server_hostname=host) as talking,
    ):
        talking.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert talking.recv(65536).startswith(b"HTTP/1.1 200 OK")
        assert talking.version() in ("TLSv1.2", "TLSv1.3")


def test_addresses_in_answers_are_https(secure: Running) -> None:
    with secure.client() as client:
        described = client.get("/docs/openapi.json").json()
        problem = client.get("/v2/usage").json()
    assert described["servers"] == [{"url": secure.url}]
    assert problem["type"] == f"{secure.url}/problems/unauthorized"


def test_who_does_not_trust_it_does_not_talk(secure: Running) -> None:
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(f"{secure.url}/healthz", trust_env=False)
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(secure.url.replace("https", "http"), trust_env=False)


def test_connections_break_under_tls_too(secure: Running) -> None:
    with secure.client(secure.token()) as client:
        for name in ("drop", "reset", "hang-up"):
            secure.fault(name, times=1)
            with pytest.raises(httpx.TransportError):
                client.get("/v2/usage")
        assert client.get("/v2/usage").status_code == 200


def test_the_authority_is_gone_when_it_ends() -> None:
    with started("--tls", "--usage", "1") as running:
        file = authority(running)
        assert file.exists()
    assert not file.exists()
