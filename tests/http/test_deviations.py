"""Answers that differ from the interface document and can be read all the same."""

import json
import logging
from typing import Any

import pytest

from pipelines.core.errors import ServiceError
from pipelines.http.client import ServiceClient
from tests.http.support import Reply, Script, merchant, page_reply

PAGE = {"limit": 10, "offset": 0, "has_more": False, "next_offset": None}
BOM = b"\xef\xbb\xbf"
MISSING = "missing"  # a member that is left out


def page(**changed: Any) -> Reply:
    """Return a page of three rows with other members of `pagination`."""
    members = {name: value for name, value in {**PAGE, **changed}.items() if value is not MISSING}
    return Reply(200, json.dumps({"data": [1, 2, 3], "pagination": members}).encode())


def encoded(encoding: str) -> Reply:
    return page()._replace(headers={"Content-Encoding": encoding})


# What is odd, and what is said of it; rows are 3 and 0.
NEXT: tuple[Any, ...] = ("10", 10.0, "/v2/usage?offset=10", "", [10])
WRONG: tuple[Any, ...] = ("10", 1.5, "x", None, MISSING, -1, {})
READ: dict[str, tuple[Reply, str, int]] = {
    **{
        f"next_offset {value!r}": (page(next_offset=value), "`pagination.next_offset` is", 3)
        for value in NEXT
    },
    **{
        f"{name} {value!r}": (page(**{name: value}), f"`pagination.{name}` is", 3)
        for name in ("limit", "offset", "has_more")
        for value in WRONG
    },
    "no pagination": (Reply(200, b'{"data": [1, 2, 3]}'), "`pagination` is missing or null", 3),
    "null pagination": (Reply(200, b'{"data": [1], "pagination": null}'), "`pagination` is", 1),
    "null data": (Reply(200, b'{"data": null, "pagination": {}}'), "`data` is null", 0),
    "204": (Reply(204), "an empty list is status 204", 0),
    "byte order mark": (page()._replace(body=BOM + page().body), "a byte order mark", 3),
    **{
        f"encoding {each}": (encoded(each), f"Content-Encoding is `{each}`", 3)
        for each in ("utf-8", "none", "binary")
    },
}


@pytest.mark.parametrize(("reply", "words", "rows"), READ.values(), ids=READ)
def test_a_deviation_is_read_and_noted_once(
    reply: Reply, words: str, rows: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    script = Script(reply, connection=merchant())

    async def ask(client: ServiceClient) -> None:
        for _ in range(3):
            answer = await script.ask_page(client)
            assert len(answer.content.data) == rows

    script.run(ask)
    noted = [each.getMessage() for each in caplog.records if words in each.getMessage()]
    assert len(noted) == 1
    assert "shop: /v2/usage differs from the interface document" in noted[0]
    assert script.attempts == []


NAMES = '{"data": ["Zoë", "Łódź"], "pagination": {"limit": 10, "offset": 0, "has_more": false}}'
LATIN = NAMES.replace("Łódź", "Müller")


@pytest.mark.parametrize(
    ("text", "encoding", "declared"),
    [
        (LATIN, "latin-1", "latin-1"),
        (LATIN, "latin-1", "ISO-8859-1"),
        (LATIN.replace("Zoë", "€"), "cp1252", '"windows-1252"'),
        (NAMES, "utf-16", "utf-16"),
        (NAMES, "utf-16-le", ""),
        (NAMES, "utf-16-be", "utf-8"),
        (NAMES, "utf-8", "latin-1"),  # wrong, and frequent: JSON is in UTF-8
        (NAMES, "utf-8-sig", "latin-1"),
    ],
)
def test_an_answer_in_another_character_set_is_read(
    text: str, encoding: str, declared: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    kind = f"application/json; charset={declared}" if declared else "application/json"
    reply = Reply(200, text.encode(encoding), {"Content-Type": kind})
    script = Script(reply, connection=merchant())
    content = script.page().content
    assert [json.loads(bytes(each)) for each in content.data] == json.loads(text)["data"]
    assert ("not in UTF-8" in caplog.text) == (not encoding.startswith("utf-8"))


def test_text_that_is_not_what_is_declared_stays_as_it_came() -> None:
    """Its record goes to quarantine; the others are loaded."""
    body = b'{"data": [1, "\x81"], "pagination": {"limit": 10, "offset": 0, "has_more": false}}'
    for charset in ("windows-1252", "utf-8", "x-unknown", ""):
        reply = Reply(200, body, {"Content-Type": f"application/json; charset={charset}"})
        content = Script(reply, connection=merchant()).page().content
        assert [bytes(each) for each in content.data] == [b"1", b'"\x81"']


@pytest.mark.parametrize(
    "body",
    [
        b'{"data": {}}',
        b'{"data": "x", "pagination": {}}',
        b"",
        BOM,
        b'{"status": "error", "message": "Try again later.", "data": null}',
        b'{"data": null, "pagination": null}',
    ],
)
def test_what_is_no_page_is_refused(body: bytes) -> None:
    with pytest.raises(ServiceError, match="not a page of a list"):
        Script(Reply(200, body), connection=merchant()).page()


def test_as_many_records_as_requested_without_paging_are_no_page() -> None:
    full = Reply(200, json.dumps({"data": [0] * 10}).encode())
    with pytest.raises(ServiceError, match="as many records as were requested"):
        Script(full, connection=merchant()).page()


def test_a_compressed_answer_that_nobody_asked_for_is_named() -> None:
    with pytest.raises(ServiceError, match="is encoded as br, which was not requested"):
        Script(encoded("br"), connection=merchant()).page()


def test_a_cache_is_asked_again_once_and_then_believed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    script = Script(page_reply([1], Age="3"), connection=merchant())
    assert script.run(script.pages) == [200]
    assert [str(each.error) for each in script.attempts] == [
        "A cache answered /v2/usage; its answer is 3 s old."
    ]
    assert "a cache answers, although the request forbids it" in caplog.text


def test_a_token_and_an_account_may_begin_with_a_byte_order_mark() -> None:
    token = Reply(200, BOM + b'{"access_token": "abc"}')
    script = Script(Reply(200, BOM + b'{"id": 7}'), tokens=[token])
    assert script.run(lambda client: client.read_object("/v2/whoami")) == {"id": 7}
