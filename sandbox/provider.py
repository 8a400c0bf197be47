"""The identity provider: signs tokens (RS256), publishes its key, and verifies what it signed.

Here: the key pair of this process, tokens and their claims ("Token response", "Token claim").
Not here: the HTTP of the token route (routes.identity), which caller may do what (access).
"""

import base64
import hashlib
import json
import secrets
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from sandbox.caller import Caller
from sandbox.clients import Client
from sandbox.clock import Clock
from sandbox.options import Options

ALGORITHM = "RS256"
KEY_BITS = 2048
REQUIRED_CLAIMS = ["iss", "aud", "sub", "iat", "exp", "actor", "scope"]
MOST_REMEMBERED = 1024  # verified tokens whose signature is not computed again


class Provider:
    """One issuer with one key made at start: a restarted sandbox refuses its former tokens."""

    def __init__(self, options: Options, clock: Clock) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
        self._clock = clock
        self._issuer = options.base_url
        self._audience = options.audience
        self._seconds = options.token_seconds
        self._public = self._key.public_key()
        numbers: dict[str, Any] = RSAAlgorithm.to_jwk(self._public, as_dict=True)
        self._key_id = _thumbprint(numbers)
        self.jwks = {
            "keys": [
                {"kty": "RSA", "use": "sig", "alg": ALGORITHM, "kid": self._key_id}
                | {name: numbers[name] for name in ("n", "e")}
            ]
        }
        self._verified: dict[str, tuple[float, Caller]] = {}

    def issue(self, client: Client) -> dict[str, str | int]:
        """Give the token response for a client."""
        now = int(self._clock.time())
        claims = {
            "iss": self._issuer,
            "aud": self._audience,
            "sub": client.id,
            "jti": secrets.token_hex(8),  # two tokens of one second are two tokens
            "iat": now,
            "exp": now + self._seconds,
            "actor": client.actor,
            "scope": " ".join(client.scopes),
        }
        token = jwt.encode(claims, self._key, ALGORITHM, headers={"kid": self._key_id})
        return {"access_token": token, "token_type": "Bearer", "expires_in": self._seconds}

    def verify(self, token: str) -> Caller | None:
        """Give the caller that a token stands for, or None if it is invalid or expired."""
        expires, caller = self._verified.get(token) or self._checked(token)
        return caller if self._clock.time() < expires else None

    def _checked(self, token: str) -> tuple[float, Caller | None]:
        try:
            if jwt.get_unverified_header(token).get("kid") != self._key_id:
                return 0.0, None
            claims = jwt.decode(
                token,
                self._public,
                [ALGORITHM],
                # PyJWT knows the machine's time only; verify compares exp with our clock.
                options={"require": REQUIRED_CLAIMS, "verify_exp": False, "verify_iat": False},
                audience=self._audience,
                issuer=self._issuer,
            )
        except (jwt.InvalidTokenError, RecursionError):  # the latter: a header of nested brackets
            return 0.0, None
        caller = Caller(claims["actor"], claims["sub"], tuple(claims["scope"].split()))
        if len(self._verified) >= MOST_REMEMBERED:
            self._verified.clear()
        self._verified[token] = claims["exp"], caller
        return claims["exp"], caller


def _thumbprint(numbers: dict[str, Any]) -> str:
    # RFC 7638: the required members in order, without spaces.
    members = {name: numbers[name] for name in ("e", "kty", "n")}
    digest = hashlib.sha256(json.dumps(members, separators=(",", ":")).encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
