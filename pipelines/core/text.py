"""Text from outside: credentials removed, control characters made visible, SQL names quoted."""

import base64
import codecs
import os
import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote_to_bytes

REDACTED = "[redacted]"
# Shorter values would redact ordinary text.
SHORTEST_SECRET = 6
LONGEST_MESSAGE = 300
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",  # as PowerShell 5 writes with `>`
    codecs.BOM_UTF16_BE: "utf-16",
}
# Of letters, in JSON. Because it begins with a fixed byte, the search is fast.
ESCAPES = re.compile(rb'\\(?:u([0-9A-Fa-f]{4}(?:\\u[0-9A-Fa-f]{4})*)|(["/\\]))')


class Redactor:
    """Removes known credentials from text and bytes, in every encoding a service may echo.

    Credentials are added when they are read or received; the object never shows them.
    """

    def __init__(self, on_add: Callable[[str], object] | None = None) -> None:
        self._on_add = on_add
        self._of_parts: list[str] = []  # secrets, not yet added here
        self._forms: list[str] = []  # of all secrets, the longest first
        self._shortest: list[bytes] = []  # forms that hold no other one
        self._escapes = re.compile(b"")  # in JSON, of letters of forms

    def part(self) -> "Redactor":
        """Return a redactor for credentials of its own; this one removes them, too.

        Each answer is searched for the credentials of its connection. With those of 32 connections,
        that took a quarter of the time of a sync.
        """
        return Redactor(self._of_parts.append)

    def add(self, secret: str) -> None:
        """Remove this credential from now on."""
        if self._on_add is not None:
            self._on_add(secret)
        if len(secret) < SHORTEST_SECRET:
            return
        forms = _forms(secret)
        if forms.issubset(self._forms):
            return
        # Tokens are added all the time. Compared with every form of all before, 200 renewals took
        # 380 s of CPU.
        self._forms = sorted(forms.union(self._forms), key=len, reverse=True)
        for form in sorted(forms, key=len):
            self._keep_shortest(form.encode())
        self._escapes = _escapes_of("".join(self._forms))

    def _keep_shortest(self, form: bytes) -> None:
        """Add a form to those that are looked for first, unless it holds one of them."""
        if any(shorter in form for shorter in self._shortest):
            return
        self._shortest = [longer for longer in self._shortest if form not in longer]
        self._shortest.append(form)

    def clean_bytes(self, data: bytes) -> bytes:
        """Return data without credentials; the same object if there are none."""
        while self._of_parts:
            self.add(self._of_parts.pop())
        if not self._forms:
            return data
        # Every page goes through here, and hardly one holds a credential. So the shortest forms are
        # looked for first, in the page and in what its escapes stand for, if it has such.
        plain = b""
        if b"%" in data or self._escapes.search(data):
            plain = _unescaped(data)
        if not any(form in data or form in plain for form in self._shortest):
            return data
        for form in self._forms:
            secret = form.encode()
            data = data.replace(secret, REDACTED.encode())
            if secret in plain:  # else the slow search is not worth it
                pattern = "".join(map(_spellings, form))
                data = re.sub(pattern.encode(), REDACTED.encode(), data)
        return data

    def clean(self, text: str) -> str:
        """Return text without credentials."""
        return self.clean_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


def _escapes_of(letters: str) -> re.Pattern[bytes]:
    """Return a pattern for escapes in JSON that may stand for one of these letters."""
    marks = "".join(re.escape(mark) for mark in '"/\\' if mark in letters)
    code = "u00[2-7]" if letters.isascii() else "u"
    return re.compile(rf"\\(?:{code}|[{marks}\0])".encode())


def _forms(secret: str) -> set[str]:
    """Return a secret as it is, in hex and in base64."""
    plain = secret.encode()
    forms = {secret, secret.replace(" ", "+"), plain.hex(), plain.hex().upper()}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        coded = encode(plain).decode()
        forms.add(coded)
        forms.add(coded.rstrip("="))
    return forms


def _unescaped(data: bytes) -> bytes:
    """Return what the escapes in JSON stand for, without and with those in URLs."""
    # A letter may be escaped for a URL and then for JSON. A secret with a percent sign must be
    # found as well: its own sign is no escape.
    plain = ESCAPES.sub(_unescaped_letters, data)
    return plain + b"\n" + unquote_to_bytes(plain)


def _unescaped_letters(escapes: re.Match[bytes]) -> bytes:
    """Return the letters of escapes."""
    # In one expression, because it is called for each escape of a page: to read both groups first
    # made the search take 60 % more.
    return escapes[2] or _letters_of_numbers(escapes[1])


def _letters_of_numbers(escapes: bytes) -> bytes:
    """Return the letters of escapes with numbers; two of them may be one letter."""
    units = bytes.fromhex(escapes.replace(rb"\u", b"").decode())
    return units.decode("utf-16-be", "surrogatepass").encode(errors="surrogatepass")


def _spellings(letter: str) -> str:
    """Return a pattern for a letter in JSON or a URL: as it is or escaped."""
    percent = "".join(rf"(?:%|\\u0025){byte:02x}" for byte in letter.encode())
    # JSON escapes the units of UTF-16: some letters are two of them.
    units = letter.encode("utf-16-be").hex(" ", -2).split()
    escaped = "".join(rf"\\u{unit}" for unit in units)
    return rf"(?:\\?{re.escape(letter)}|(?i:{escaped}|{percent}))"


def decode_text(data: bytes) -> str:
    """Return the text of a file that a person wrote, by its byte order mark, else in UTF-8.

    Line breaks of Windows become those of Unix. Raises UnicodeDecodeError.
    """
    encoding = "utf-8"
    for mark, name in MARKS.items():
        if data.startswith(mark):
            encoding = name
    return data.decode(encoding).replace("\r\n", "\n")


def has_undecoded(text: str) -> bool:
    """Return whether text from the system holds bytes that are no text in its encoding."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def from_system(text: str) -> str:
    """Return an argument or a variable as UTF-8 text, though the locale has another encoding.

    Raises UnicodeDecodeError if it is not UTF-8 either.
    """
    return os.fsencode(text).decode() if has_undecoded(text) else text


def printable(text: object, limit: int = LONGEST_MESSAGE) -> str:
    """Return foreign text as one line; control and bidirectional characters become escapes."""
    letters = []
    for letter in str(text)[: limit + 1]:
        if letter.isprintable():
            letters.append(letter)
        else:
            letters.append(letter.encode("unicode_escape").decode())
    line = "".join(letters)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 row`, `2,000 rows`."""
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


def quote_text(text: str) -> str:
    """Return a text quoted for SQL."""
    return "'" + text.replace("'", "''") + "'"


def is_one_of(column: str, texts: Iterable[str] | None) -> str:
    """Return the SQL condition that a column is one of some texts; None: whatever it is."""
    if texts is None:
        return "true"
    listed = ", ".join(map(quote_text, sorted(texts)))
    return f"{column} IN ({listed})" if listed else "false"


def quote_identifier(name: str) -> str:
    """Return a name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'
