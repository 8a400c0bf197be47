"""Text from outside: credentials removed, control characters made visible, SQL names quoted."""

import base64
import json
import unicodedata
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

    def __repr__(self) -> str:
        return f"Redactor({len(self._needles)} forms)"

    def add(self, secret: str) -> None:
        """Remove this credential from now on."""
        if len(secret) >= SHORTEST_SECRET:
            forms = {*self._needles, *_encodings(secret)}
            self._needles = tuple(sorted(forms, key=len, reverse=True))

    def clean_bytes(self, data: bytes) -> bytes:
        """Return data without credentials; the same object if there are none."""
        for needle in self._needles:
            if needle in data:
                data = data.replace(needle, REDACTED.encode())
        return data

    def clean(self, text: str) -> str:
        """Return text without credentials."""
        if not self._needles:
            return text
        return self.clean_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


def _encodings(secret: str) -> set[bytes]:
    plain = secret.encode()
    encoded = base64.b64encode(plain)
    forms = {
        plain,
        encoded,
        encoded.rstrip(b"="),
        base64.urlsafe_b64encode(plain),
        quote(secret, safe="").encode(),
        quote(secret, safe="").lower().encode() if "%" in quote(secret, safe="") else plain,
        quote_plus(secret).encode(),
        json.dumps(secret)[1:-1].encode(),
        json.dumps(secret)[1:-1].replace("/", "\\/").encode(),
        "".join(f"\\u{ord(letter):04x}" for letter in secret).encode(),
        plain.hex().encode(),
    }
    return {form for form in forms if form}


def printable(text: object, limit: int = LONGEST_MESSAGE) -> str:
    """Return foreign text as one line; control and bidirectional characters become escapes."""
    shown = "".join(_visible(letter) for letter in str(text)[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _visible(letter: str) -> str:
    if letter == " " or unicodedata.category(letter)[0] not in "CZ":
        return letter
    return (
        letter.encode("unicode_escape").decode() if ord(letter) < 256 else f"\\u{ord(letter):04x}"
    )  # noqa: PLR2004 - unicode_escape gives \x00 to \xff


def quote_identifier(name: str) -> str:
    """Return a name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'
