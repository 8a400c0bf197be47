"""Whose certificates are trusted, and what is wrong with one that is not."""

import os
import ssl
from functools import cache
from pathlib import Path

import httpx

from pipelines.config.connections import Connection
from pipelines.core.errors import ConfigurationError

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
DER = b"\x30"  # how a certificate in DER begins: with an ASN.1 sequence
# OpenSSL's codes for what only strict checks refuse (X509_V_ERR_INVALID_CA to _EC_KEY_EXPLICIT):
# Python 3.13 and later make them, before that a certificate like this was accepted.
STRICT_CODES = range(79, 95)


def trusted(connection: Connection, *, use_variables: bool) -> ssl.SSLContext:
    """Return a context with the certificates that a connection trusts.

    `use_variables`: SSL_CERT_FILE and SSL_CERT_DIR count where there is no ca_file. Raises
    ConfigurationError for a file that cannot be used.
    """
    if connection.ca_file is None:
        # As arguments, because the context is kept for the same values.
        return _built_in(*map(os.environ.get, VARIABLES if use_variables else []))
    try:
        context = _context(connection.ca_file)
    except (OSError, UnicodeDecodeError) as error:  # among them ssl.SSLError
        why = "it holds no certificate in PEM or DER"
        if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
            why = str(error.strerror)
        raise ConfigurationError(
            f"Cannot read ca_file {connection.ca_file} of connection `{connection.name}`: "
            f"{why}. Nothing was requested.",
            "Correct ca_file in connections.toml.",
        ) from None
    if not connection.ca_strict:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


# To make one takes 20 ms, and many connections share it.
@cache
def _built_in(*values: str | None) -> ssl.SSLContext:
    """Return a context with the certificates of the package certifi, or of these variables."""
    try:
        return httpx.create_ssl_context(trust_env=bool(values))
    except OSError as error:
        raise ConfigurationError(
            "The certificates of the environment variable SSL_CERT_FILE or SSL_CERT_DIR cannot be "
            f"read: {error.strerror or error}. Nothing was requested.",
            "Correct the variable, or set ca_file in connections.toml.",
        ) from None


def _context(file: Path) -> ssl.SSLContext:
    content = file.read_bytes()
    if content.startswith(DER):
        return ssl.create_default_context(cadata=content)
    if not content.strip():
        raise ssl.SSLError("empty")
    return ssl.create_default_context(cafile=file)


def certificate_problem(error: BaseException | None, place: str) -> ConfigurationError | None:
    """Return what is wrong with a server's certificate, if a failure of the network is about it."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    message = error.verify_message or "it cannot be verified"
    if error.verify_code in STRICT_CODES:
        return ConfigurationError(
            f"The certificate of {place} or its authority is not as RFC 5280 requires, which this "
            f"Python checks: {message}. Nothing was sent.",
            "Ask for a correct certificate, or set ca_file to its authority and ca_strict = false "
            "in connections.toml.",
        )
    return ConfigurationError(
        f"The certificate of {place} is not trusted: {message}. Nothing was sent.",
        "Set ca_file of the connection to the service's certificate authority.",
    )
