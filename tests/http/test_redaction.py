"""Credentials that the service echoes appear nowhere, however they are encoded."""

import json
import logging
from collections.abc import Callable
from urllib.parse import quote

import pytest

from pipelines.config.connections import Connection
from pipelines.core.errors import PartnerSyncError
from pipelines.core.text import REDACTED
from pipelines.http.client import ServiceClient
from tests.core.test_text import ENCODINGS
from tests.http.support import API_KEY, SECRET, Reply, Script, json_reply, merchant, page_reply

TOKEN = "a-long-bearer-token"


def raw_object(name: str, value: str) -> bytes:
    """Return a JSON object whose value is written as it is, escapes included."""
    return f'{{"{name}": "says {value} here"}}'.encode()


def raw_page(value: str) -> bytes:
    return page_reply().body.replace(b'"data": []', b'"data": [%b]' % raw_object("name", value))


# Where the service echoes a credential.
PLACES: dict[str, Callable[[str], Reply]] = {
    "title": lambda value: Reply(403, raw_object("title", value)),
    "detail of a 429": lambda value: Reply(429, raw_object("detail", value)),
    "redirect": lambda value: Reply(307, headers={"Location": f"https://else/{quote(value)}"}),
    "header": lambda value: page_reply(Age=f"0 {quote(value)}"),
    "request id": lambda value: Reply(body=b"", headers={"X-Request-Id": quote(value)}),
    "page": lambda value: Reply(body=raw_page(value)),
    "HTML": lambda value: Reply(body=f"<html>{value}".encode()),
    "token request": lambda _value: json_reply(401, detail=SECRET),
}
CREDENTIALS = {"secret": (SECRET, None), "token": (TOKEN, None), "API key": (API_KEY, merchant())}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("value", "connection"), CREDENTIALS.values(), ids=CREDENTIALS)
def test_no_echo_is_seen(
    value: str, connection: Connection | None, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for encode in ENCODINGS.values():
        reply = PLACES[place](encode(value))
        token = reply if place == "token request" else json_reply(access_token=TOKEN)
        script = Script(reply, connection=connection, tokens=[token])

        async def ask(client: ServiceClient, script: Script = script) -> str:
            """Ask for a page; return everything that anybody could see of it."""
            try:
                answer = await script.ask_page(client)
            except PartnerSyncError as error:
                return repr((error, str(error), error.remedy, client))
            return repr((answer, answer.body, client))

        seen = script.run(ask) + caplog.text + repr(script.redactor)
        seen += repr([(each, each.body, each.error, each.failure) for each in script.attempts])
        for form in ENCODINGS.values():
            assert form(value) not in seen
            assert repr(form(value))[1:-1] not in seen
            assert repr(form(value).encode())[2:-1] not in seen


HALF = "\\u0063" + json.dumps(SECRET)[2:-1]
WHOAMI = {**{name: encode(SECRET) for name, encode in ENCODINGS.items()}, "half escaped": HALF}


@pytest.mark.parametrize("echo", WHOAMI.values(), ids=WHOAMI)
def test_an_echo_leaves_a_mark_also_where_only_decoding_shows_it(echo: str) -> None:
    cleaned = f"says {REDACTED} here"
    replies = [Reply(body=raw_page(SECRET)), Reply(body=raw_object("who", echo))]
    script = Script(*replies, Reply(403, raw_object("detail", echo)))
    assert json.loads(script.page().body)["data"] == [{"name": cleaned}]
    assert script.run(lambda client: client.read_object("/v2/whoami")) == {"who": cleaned}
    with pytest.raises(PartnerSyncError) as got:
        script.page()
    assert SECRET not in str(got.value)
