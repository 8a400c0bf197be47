"""Credentials that the service echoes appear nowhere, however they are encoded."""

import base64
import json
import logging
from collections.abc import Callable
from urllib.parse import quote

import pytest

from pipelines.config.connections import Connection
from pipelines.core.errors import PartnerSyncError
from pipelines.core.text import REDACTED
from pipelines.http.client import ServiceClient
from tests.http.support import (
    API_KEY,
    SECRET,
    Desk,
    Reply,
    Script,
    merchant,
    page_reply,
    partner,
    problem_reply,
)

TOKEN = "token-1"  # what Script gives first
ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "percent-encoded": lambda text: quote(text, safe=""),
    "JSON-escaped": lambda text: json.dumps(text)[1:-1],
    "escaped letter by letter": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
}


def raw_object(name: str, value: str) -> bytes:
    """Return a JSON object whose value is written as it is, escapes included."""
    return f'{{"{name}": "says {value} here"}}'.encode()


def raw_page(value: str) -> bytes:
    return page_reply().body.replace(b'"data": []', b'"data": [%b]' % raw_object("name", value))


# Where the service echoes a credential.
PLACES: dict[str, Callable[[str], Reply]] = {
    "title": lambda value: Reply(403, raw_object("title", value)),
    "detail": lambda value: Reply(403, raw_object("detail", value)),
    "detail of a 500": lambda value: Reply(500, raw_object("detail", value)),
    "detail of a 429": lambda value: Reply(429, raw_object("detail", value)),
    "redirect": lambda value: Reply(307, headers={"Location": f"https://else/{quote(value)}"}),
    "header": lambda value: page_reply(Age=f"0 {quote(value)}"),
    "request id": lambda value: Reply(body=b"", headers={"X-Request-Id": quote(value)}),
    "page": lambda value: Reply(body=raw_page(value)),
    "broken page": lambda value: Reply(body=raw_page(value)[:-3]),
    "HTML": lambda value: Reply(body=f"<html>{value}".encode()),
}


def shown(desk: Desk, caplog: pytest.LogCaptureFixture) -> str:
    """Ask for a page; return everything that anybody could see of it."""

    async def ask(client: ServiceClient) -> str:
        try:
            answer = await client.page("/v2/usage", 0, 10, desk.attempts.append)
        except PartnerSyncError as error:
            return repr((error, str(error), error.remedy, client))
        return repr((answer, answer.body, answer.headers, answer.request_id, client))

    caplog.set_level(logging.DEBUG)
    seen = desk.run(ask)
    seen += repr([(each, each.body, each.headers, each.error) for each in desk.attempts])
    return seen + caplog.text + repr(desk.redactor)


CREDENTIALS: dict[str, tuple[str, Callable[[], Connection]]] = {
    "secret": (SECRET, partner),
    "token": ("a-long-bearer-token", partner),
    "API key": (API_KEY, merchant),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
@pytest.mark.parametrize("credential", CREDENTIALS.values(), ids=CREDENTIALS.keys())
def test_no_echo_is_seen(
    credential: tuple[str, Callable[[], Connection]],
    place: Callable[[str], Reply],
    caplog: pytest.LogCaptureFixture,
) -> None:
    for encode in ENCODINGS.values():
        caplog.clear()
        check_echo(credential, encode, place, caplog)


def check_echo(
    credential: tuple[str, Callable[[], Connection]],
    encode: Callable[[str], str],
    place: Callable[[str], Reply],
    caplog: pytest.LogCaptureFixture,
) -> None:
    value, connection = credential
    script = Script(place(encode(value)))
    token = {"access_token": "a-long-bearer-token", "expires_in": 3600}
    script.token_replies = [Reply(body=json.dumps(token).encode())]
    seen = shown(script.desk(connection()), caplog)
    for form in ENCODINGS.values():
        assert form(value) not in seen
        assert repr(form(value))[1:-1] not in seen
        assert repr(form(value).encode())[2:-1] not in seen


def test_an_echo_leaves_a_mark_and_the_rest_of_the_page() -> None:
    answer = Script(Reply(body=raw_page(SECRET))).desk().page()
    assert json.loads(answer.body or b"")["data"] == [{"name": f"says {REDACTED} here"}]


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_whoami_hides_what_it_echoes(encode: Callable[[str], str]) -> None:
    body = raw_object("who", encode(SECRET))
    answer = Script(Reply(body=body)).desk().run(lambda client: client.whoami())
    assert answer == {"who": f"says {REDACTED} here"}


def test_half_escaped_words_are_cleaned_once_more() -> None:
    half = "\\u0063" + json.dumps(SECRET)[2:-1]
    assert json.loads(f'"{half}"') == SECRET
    script = Script(Reply(body=raw_object("who", half)), Reply(403, raw_object("detail", half)))
    desk = script.desk()
    assert desk.run(lambda client: client.whoami()) == {"who": f"says {REDACTED} here"}
    with pytest.raises(PartnerSyncError) as got:
        desk.page()
    assert SECRET not in str(got.value)


def test_the_token_request_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    script = Script(page_reply())
    script.token_replies = [problem_reply(401, SECRET)]
    assert SECRET not in shown(script.desk(), caplog)
