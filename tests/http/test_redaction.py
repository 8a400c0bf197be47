"""Credentials that the service echoes leave a mark in their place (all places: test_secrets)."""

import json

import pytest

from pipelines.config.connections import Connection
from pipelines.core.errors import PartnerSyncError
from pipelines.core.text import REDACTED
from tests.http.support import API_KEY, SECRET, Reply, Script, json_reply, merchant, page_reply

TOKEN = "a-long-bearer-token"
CREDENTIALS = {"secret": (SECRET, None), "token": (TOKEN, None), "API key": (API_KEY, merchant())}


def raw_object(name: str, secret: str) -> bytes:
    """Return a JSON object that says a secret whose first letter is escaped."""
    echo = f"\\u{ord(secret[0]):04x}{json.dumps(secret)[2:-1]}"
    return f'{{"{name}": "says {echo} here"}}'.encode()


@pytest.mark.parametrize(("secret", "connection"), CREDENTIALS.values(), ids=CREDENTIALS)
def test_an_echo_leaves_a_mark_also_where_only_decoding_shows_it(
    secret: str, connection: Connection | None
) -> None:
    page = page_reply().body.replace(b'"data": []', b'"data": [%b]' % raw_object("name", secret))
    echoes = (Reply(body=page), Reply(body=raw_object("who", secret)))
    denied, tokens = Reply(403, raw_object("detail", secret)), [json_reply(access_token=TOKEN)] * 3
    script = Script(*echoes, denied, connection=connection, tokens=tokens)
    assert json.loads(script.page().body)["data"] == [{"name": f"says {REDACTED} here"}]
    whoami = script.run(lambda client: client.read_object("/v2/whoami"))
    assert whoami == {"who": f"says {REDACTED} here"}
    with pytest.raises(PartnerSyncError) as got:
        script.page()
    assert secret not in str(got.value)
    assert REDACTED in str(got.value)
