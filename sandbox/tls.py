"""HTTPS for the loopback address: an authority and a certificate made at start, kept nowhere.

Here: making both, and the file that a client names as its ``ca_file``. Not here: serving (server).
The interface says that all calls use HTTPS; without ``--tls`` the sandbox spares its users that.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ADDRESS = IPv4Address("127.0.0.1")
LIFETIME = timedelta(days=30)
SKEW = timedelta(hours=1)  # a client's clock may be behind


@dataclass(frozen=True)
class Certificates:
    """What the server presents, and the file with the authority that vouches for it."""

    context: ssl.SSLContext
    authority: Path


@contextmanager
def certificates() -> Iterator[Certificates]:
    """Make an authority and a server certificate; remove the authority's file at the end."""
    issuer_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = _authority(issuer_key)
    pem = _server(key, issuer, issuer_key).public_bytes(Encoding.PEM)
    pem += key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    authority = _written(issuer.public_bytes(Encoding.PEM), "sandbox-authority-")
    private = _written(pem, "sandbox-key-")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(private)  # reads files alone
        finally:
            private.unlink()
        context.set_alpn_protocols(["http/1.1"])
        yield Certificates(context, authority)
    finally:
        authority.unlink(missing_ok=True)


def _written(pem: bytes, prefix: str) -> Path:
    # mkstemp opens with O_EXCL and mode 0600.
    handle, name = tempfile.mkstemp(prefix=prefix, suffix=".pem")
    with os.fdopen(handle, "wb") as file:
        file.write(pem)
    return Path(name)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, issuer: x509.Name
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _name("partner-sync sandbox authority")
    return (
        _certificate(name, key.public_key(), name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _server(
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    names: list[x509.GeneralName] = [x509.IPAddress(ADDRESS), x509.DNSName("localhost")]
    # Python 3.13 and later refuse a certificate without its authority's key identifier.
    vouched = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return (
        _certificate(_name("localhost"), key.public_key(), issuer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(vouched, critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
