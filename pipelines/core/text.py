"""Text from outside: credentials removed, control characters made visible, SQL names quoted."""

import base64
import re
from collections.abc import Iterable

REDACTED = "[redacted]"
SHORTEST_SECRET = 6  # shorter values would redact ordinary text
LONGEST_MESSAGE = 300
# An escape of a letter, in JSON or a URL; and the few that ASCII letters have.
ESCAPE = re.compile(rb"\\u([0-9A-Fa-f]{4})|%([0-9A-Fa-f]{2})|\\([\"/\\])")
ASCII_ESCAPE = re.compile(rb"\\u(00[2-7][0-9A-Fa-f])|%([2-7][0-9A-Fa-f])|\\([\"/\\])")


class Redactor:
    """Removes known credentials from text and bytes, in every encoding a service may echo.

    Credentials are added when they are read or received; the object never shows them.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: dict[bytes, re.Pattern[bytes]] = {}  # unescaped, and in any spelling
        self._needles: tuple[bytes, ...] = ()
        self._escape = ASCII_ESCAPE
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Remove this credential from now on."""
        if len(secret) >= SHORTEST_SECRET:
            forms = {*self._needles, *_encodings(secret)}
            self._needles = tuple(sorted(forms, key=len, reverse=True))
            pattern = re.compile("".join(map(_spellings, secret)).encode())
            self._secrets |= {secret.encode(): pattern}
            self._escape = self._escape if secret.isascii() else ESCAPE

    def clean_bytes(self, data: bytes) -> bytes:
        """Return data without credentials; the same object if there are none."""
        for needle in self._needles:
            data = data.replace(needle, REDACTED.encode())
        if b"\\" in data or b"%" in data:
            plain = self._escape.sub(_unescaped, data)
            for secret, pattern in self._secrets.items():
                if secret in plain or secret.replace(b" ", b"+") in plain:
                    data = pattern.sub(REDACTED.encode(), data)
        return data

    def clean(self, text: str) -> str:
        """Return text without credentials."""
        if not self._needles:
            return text
        return self.clean_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


def _encodings(secret: str) -> set[bytes]:
    plain = secret.encode()
    base64s = base64.b64encode(plain), base64.urlsafe_b64encode(plain)
    hexes = plain.hex().encode(), plain.hex().upper().encode()
    return {
        plain,
        plain.replace(b" ", b"+"),
        *hexes,
        *base64s,
        *(each.rstrip(b"=") for each in base64s),
    }


def _unescaped(found: re.Match[bytes]) -> bytes:
    unit, percent, letter = found.groups()
    if unit:
        return chr(int(unit, 16)).encode(errors="surrogatepass")
    return letter or bytes([int(percent, 16)])


def _spellings(letter: str) -> str:
    """Return a pattern for a letter in JSON, a URL or a form: as it is or escaped."""
    percent = "".join(f"%{byte:02x}" for byte in letter.encode())
    units = letter.encode("utf-16-be").hex(" ", -2).split()  # JSON escapes those of UTF-16
    escaped = "".join(rf"\\u{unit}" for unit in units)
    space = r"\+|" if letter == " " else ""
    return rf"(?:{space}\\?{re.escape(letter)}|(?i:{escaped}|{percent}))"


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
