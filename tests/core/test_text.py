import base64
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.core.text import REDACTED, Redactor, printable, quote_identifier

SECRET = 'p@ss/w örd🔑"\\+=1'
REDACTOR = Redactor()
REDACTOR.add(SECRET)
ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "percent-encoded": lambda text: quote(text, safe=""),
    "JSON-escaped": lambda text: json.dumps(text)[1:-1],
    "escaped letter by letter": lambda text: "".join(spelled(letter, 1) for letter in text),
}
OTHERS: dict[str, Callable[[str], str]] = {
    "form": quote_plus,
    "JSON, not ASCII": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON, base64": lambda text: ENCODINGS["base64"](text).replace("/", r"\/"),
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
}


@pytest.mark.parametrize("encode", (ENCODINGS | OTHERS).values(), ids=ENCODINGS | OTHERS)
def test_a_credential_is_removed_in_every_encoding(encode: Callable[[str], str]) -> None:
    assert REDACTOR.clean(f"before {encode(SECRET)} after") == f"before {REDACTED} after"
    assert SECRET not in repr(REDACTOR)
    data = b'{"data": ["100 %", "\\n"]}'
    assert REDACTOR.clean_bytes(data) is data  # no copy of a page without credentials


def test_a_percent_sign_in_a_credential_escapes_nothing() -> None:
    redactor, secret = Redactor(), 'half%41"of it'
    redactor.add(secret)
    assert redactor.clean(json.dumps([secret, 1])) == f'["{REDACTED}", 1]'
    assert redactor.clean(quote(secret)) == REDACTED


def test_a_part_knows_its_own_credentials_and_the_whole_those_of_every_part() -> None:
    whole = Redactor()
    one = whole.part()
    other = whole.part()
    whole.add("of-the-channel")
    one.add("of-the-first")
    other.add("of-the-second")
    text = "of-the-channel of-the-first of-the-second"
    assert whole.clean(text) == "[redacted] [redacted] [redacted]"
    assert one.clean(text) == "of-the-channel [redacted] of-the-second"
    other.add("of-the-first-and-the-second")
    assert whole.clean("of-the-first-and-the-second") == "[redacted]"


def test_many_short_lived_tokens_are_removed() -> None:
    redactor, tokens = Redactor(), [f"token-{number}-of-two-seconds" for number in range(300)]
    for token in tokens:  # comparing each with all before would take minutes
        redactor.add(token)
    assert redactor.clean(" ".join(tokens)) == " ".join([REDACTED] * 300)
    assert redactor.clean_bytes(tokens[-1].encode()) == REDACTED.encode()


def spelled(letter: str, way: int) -> str:
    """Return a letter as it is, as JSON escapes it, as a URL does, or as both do."""
    units = letter.encode("utf-16-be").hex(" ", -2).split()
    escaped = "".join(f"\\u{unit}" for unit in units)
    percent = "".join(f"%{byte:02x}" for byte in letter.encode())
    plain = f"\\{letter}" if letter in '"\\' else letter
    twice = percent.replace("%", r"\u0025")
    return (plain, escaped, escaped.upper().replace("U", "u"), percent, twice)[way]


@given(st.lists(st.integers(0, 4), min_size=len(SECRET), max_size=len(SECRET)))
def test_each_letter_of_a_credential_may_be_escaped_in_its_own_way(ways: list[int]) -> None:
    encoded = "".join(map(spelled, SECRET, ways))
    assert REDACTOR.clean(f"before {encoded} after") == f"before {REDACTED} after"


@given(st.text())
def test_printable_text_has_no_control_and_no_bidi_character(text: str) -> None:
    assert printable(text).isprintable()
    assert printable("a\x1b[31m\u202eb\nc\ud800") == "a\\x1b[31m\\u202eb\\nc\\ud800"
    assert len(printable(300 * "a" + text)) == 300


def test_quoted_identifiers_end_where_they_should() -> None:
    assert quote_identifier('a"; DROP') == '"a""; DROP"'
