"""Credentials that the service echoes leave a mark in their place (all places: test_secrets)."""

import json

import pytest

from pipelines.config.connections import Connection
from pipelines.core.errors import PartnerSyncError
from pipelines.core.text import REDACTED
from tests.core.test_text import ENCODINGS
from tests.http.support import API_KEY, SECRET, Reply, Script, json_reply, merchant, page_reply

TOKEN = "a-long-bearer-token"
CREDENTIALS = {"secret": (SECRET, None), "token": (TOKEN, None), "API key": (API_KEY, merchant())}
ECHOES = {
    f"{name}, {place}": (connection, secret, encode(secret))
    for name, (secret, connection) in CREDENTIALS.items()
    for place, encode in ENCODINGS.items()
}
HALF = "\\u0063" + json.dumps(SECRET)[2:-1]
ECHOES["half escaped"] = (None, SECRET, HALF)


def raw_object(name: str, value: str) -> bytes:
    """Return a JSON object whose value is written as it is, escapes included."""
    return f'{{"{name}": "says {value} here"}}'.encode()


@pytest.mark.parametrize(("connection", "secret", "echo"), ECHOES.values(), ids=ECHOES)
def test_an_echo_leaves_a_mark_also_where_only_decoding_shows_it(
    connection: Connection | None, secret: str, echo: str
) -> None:
    page = page_reply().body.replace(b'"data": []', b'"data": [%b]' % raw_object("name", echo))
    replies = [Reply(body=page), Reply(body=raw_object("who", echo))]
    tokens = [json_reply(access_token=TOKEN)] * 3
    script = Script(
        *replies, Reply(403, raw_object("detail", echo)), connection=connection, tokens=tokens
    )
    assert json.loads(script.page().body)["data"] == [{"name": f"says {REDACTED} here"}]
    whoami = script.run(lambda client: client.read_object("/v2/whoami"))
    assert whoami == {"who": f"says {REDACTED} here"}
    with pytest.raises(PartnerSyncError) as got:
        script.page()
    assert secret not in str(got.value)
    assert REDACTED in str(got.value)
