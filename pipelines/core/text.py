"""Text from outside: credentials removed, control characters made visible, SQL names quoted."""

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

REDACTED = "[redacted]"
SHORTEST_SECRET = 6  # shorter values would redact ordinary text
LONGEST_MESSAGE = 300


class Redactor:
    """Removes known credentials from text and bytes, in every encoding a service may echo.

    Credentials are added when they are read or received; the object never shows them.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._needles: tuple[bytes, ...] = ()
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Remove this credential from now on."""
        if len(secret) >= SHORTEST_SECRET:
            forms = {*self._needles, *_encodings(secret)}
            self._needles = tuple(sorted(forms, key=len, reverse=True))

    def clean_bytes(self, data: bytes) -> bytes:
        """Return data without credentials; the same object if there are none."""
        for needle in self._needles:
            data = data.replace(needle, REDACTED.encode())
        return data

    def clean(self, text: str) -> str:
        """Return text without credentials."""
        if not self._needles:
            return text
        return self.clean_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


def _encodings(secret: str) -> set[bytes]:
    plain = secret.encode()
    percent = quote(secret, safe="")
    escaped = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    texts = {
        percent,
        re.sub("%..", lambda found: found[0].lower(), percent),
        quote_plus(secret),
        *escaped,
        *(text.replace("/", "\\/") for text in escaped),
        "".join(f"\\u{ord(letter):04x}" for letter in secret),
        plain.hex(),
        base64.b64encode(plain).decode().rstrip("="),
        base64.urlsafe_b64encode(plain).decode().rstrip("="),
    }
    return {plain, base64.b64encode(plain), *(text.encode() for text in texts)}


def printable(text: object, limit: int = LONGEST_MESSAGE) -> str:
    """Return foreign text as one line; control and bidirectional characters become escapes."""
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in str(text)[: limit + 1]
    )
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def quote_identifier(name: str) -> str:
    """Return a name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'
