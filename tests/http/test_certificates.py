"""Authorities of companies: not as RFC 5280 requires, or in another format."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from pipelines.core.errors import ConfigurationError
from tests.http.support import merchant
from tests.http.test_wire import PAGE, Wire, answer

NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Corp Root")])
HOST = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])


def certificate(key: Any, issuer_key: Any, name: x509.Name, extension: Any) -> x509.Certificate:
    """Return a certificate with one extension, which is not critical, and no key identifier."""
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(NAME, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1))
    builder = builder.not_valid_after(now + timedelta(days=1))
    return builder.add_extension(extension, critical=False).sign(issuer_key, hashes.SHA256())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    """The context of a server, and the file of its authority in PEM; beside it, one in DER."""
    folder = tmp_path_factory.mktemp("authority")
    issuer_key, key = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
    )
    is_authority = x509.BasicConstraints(ca=True, path_length=None)
    issuer = certificate(issuer_key, issuer_key, NAME, is_authority)
    host = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    own = certificate(key, issuer_key, host, HOST).public_bytes(Encoding.PEM)
    own += key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "own.pem").write_bytes(own)
    for name, encoding in (("ca.pem", Encoding.PEM), ("ca.der", Encoding.DER)):
        (folder / name).write_bytes(issuer.public_bytes(encoding))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "own.pem")
    return context, folder / "ca.pem"


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check certificates as Python 3.13 and later do."""
    create = ssl.create_default_context

    def create_strict(**given: Any) -> ssl.SSLContext:
        context = create(**given)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", create_strict)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("name", ["ca.pem", "ca.der"])
def test_what_an_authority_lacks_is_named_and_can_be_accepted(
    server: tuple[ssl.SSLContext, Path], name: str
) -> None:
    context, file = server[0], server[1].with_name(name)
    with pytest.raises(ConfigurationError, match=r"critical|Key Identifier|key usage") as got:
        Wire([answer(PAGE)]).page(context, file)
    assert "is not as RFC 5280 requires" in str(got.value)
    assert "ca_strict = false" in got.value.remedy
    assert Wire([answer(PAGE)]).page(context, file, ca_strict=False).status == 200


@pytest.mark.usefixtures("strict")
def test_another_authority_stays_untrusted(server: tuple[ssl.SSLContext, Path]) -> None:
    with pytest.raises(ConfigurationError, match="is not trusted"):
        Wire([answer(PAGE)]).page(server[0])


def test_the_setting_needs_an_authority_of_its_own() -> None:
    with pytest.raises(ValueError, match="only with ca_file"):
        merchant(ca_strict=False)
