"""What each failure means: retried or not, and the words that a user reads."""

import pytest

from pipelines.core.errors import Forbidden, NotPermitted, RateLimited, ServiceError, Unavailable
from pipelines.core.errors import UnexpectedAnswer as Unexpected
from pipelines.http.retry import TRIES, UNCHANGED
from tests.http.support import Reply, Script, http_date, json_reply, merchant, page_reply

HTML = b" <html>Bad gateway</html>"
NO_GZIP = Reply(200, page_reply().body, {"Content-Encoding": "gzip"})
A_DAY_AHEAD = page_reply(Date=http_date(90_000))
RED = "\x1b[31mred\x1b[0m \u202e left " + "long " * 10_000


def problem(status: int, detail: str) -> Reply:
    return json_reply(status, title="Title", detail=detail)


def moved(location: str, status: int = 301) -> Reply:
    return Reply(status, headers={"Location": location})


# An answer, its error, words of the message, and words of the remedy.
CASES: dict[str, tuple[Reply, type[ServiceError], str, str]] = {
    "500": (problem(500, "why"), Unavailable, '500: it may pass. The service says: "why"', "later"),
    "502": (Reply(502, HTML), Unavailable, "with status 502: it may pass.", "sync"),
    "503": (Reply(503), Unavailable, "with status 503", "sync"),
    "control characters": (json_reply(500, title="\x1b[2J"), Unavailable, r'says: "\x1b[2J"', ""),
    "205": (Reply(205), Unavailable, "with status 205", "sync"),
    "204 with a body": (Reply(204, b"{}"), Unavailable, "with status 204", "sync"),
    "408": (Reply(408), Unavailable, "with status 408", "sync"),
    "520": (Reply(520), Unavailable, "with status 520", "sync"),
    "HTML": (Reply(200, HTML), Unavailable, "is a page of HTML, perhaps of a proxy", "base_url"),
    "empty body": (Reply(200), Unavailable, "not a page of a list", "base_url"),
    "not an object": (Reply(200, b"[]"), Unavailable, "not a page of a list", "base_url"),
    "no gzip": (NO_GZIP, Unavailable, "cannot be decompressed", "sync"),
    "too many records": (page_reply([{}] * 121), Unavailable, "more than 120 records", "sync"),
    "answered by a cache": (page_reply(Age="999"), Unavailable, "answer is 999 s old", "sync"),
    "429": (problem(429, "slow down"), RateLimited, "slow down", "max_requests_per_window"),
    "organization disabled": (
        problem(401, "API access is not active for this organization."),
        *(ServiceError, "the organization of connection `shop` is disabled", "activate"),
    ),
    "bad key": (problem(401, ""), ServiceError, "connection `shop` are not accepted", "API key"),
    "trial ended": (
        problem(403, "The trial has ended and billing is not enabled."),
        *(Forbidden, "the free trial of connection `shop` has ended", "Enable billing"),
    ),
    "mapping": (problem(403, "Requires companyAdmin"), Forbidden, "lacks a mapping", "companyAdm"),
    "scope": (
        problem(403, "missing SCOPE"),
        NotPermitted,
        "lacks the OAuth scope",
        "grant the scope",
    ),
    "actor": (
        problem(403, "actor_type"),
        NotPermitted,
        "actor type of connection",
        "another actor",
    ),
    "403": (problem(403, "why"), Forbidden, "may not use this route", 'skip = ["usage"] to [shop]'),
    "405": (problem(405, "why"), Unexpected, "document does not know this status. The s", "check"),
    "404": (problem(404, "why"), Unexpected, "does not exist at http://127.0.0.1:8000", "base_url"),
    "304": (Reply(304), Unexpected, "status 304", "check"),
    "501": (Reply(501), Unexpected, "status 501", "check"),
    "clock": (A_DAY_AHEAD, Unexpected, "which says 2026-11-24 12:00:0", "correct"),
    "moved": (moved("https://else/in?session=1#x"), Unexpected, "to https://else/in.", "base"),
    "moved, password": (moved("https://me:pass@else/"), Unexpected, "to https://else/.", "base"),
    "moved within": (moved("/v3/usage?offset=1", 307), Unexpected, "to /v3/usage. It was not", ""),
    "moved oddly": (moved("http:\\\\me:pass@else/x"), Unexpected, "to http:\\\\else/x. It", ""),
    "moved to no host": (moved("http://host:port/"), Unexpected, "to http://host:port/. It", ""),
    "moved to control characters": (moved("\\\\\x7f", 307), Unexpected, "to \\\\\\x7f. It", ""),
    "moved nowhere": (moved(""), Unexpected, "a redirect to no address. It", "base_url"),
    **{
        f"hostile problem {body[:14]!r}": (Reply(403, body), Forbidden, "not use this route", "")
        for body in (
            *(b"null", b'{"title": "half', b'{"title": "\xff"}', b'{"title": "\\ud800"}'),
            *(b'{"title":' + b"[" * 100_000, b'{"x":' + b"9" * 5000 + b"}", b'{"title": 7}'),
            json_reply(title=RED).body,
        )
    },
}


@pytest.mark.parametrize(("reply", "error", "words", "remedy"), CASES.values(), ids=CASES)
def test_a_failure(reply: Reply, error: type[ServiceError], words: str, remedy: str) -> None:
    script = Script(reply, connection=merchant())
    with pytest.raises(error) as got:
        script.page()
    message, tries = str(got.value), TRIES.get(error, 1)
    assert type(got.value) is error
    assert words in message
    assert message.endswith(f"Tried {tries} times. {UNCHANGED}" if tries > 1 else UNCHANGED)
    assert message.isprintable()
    assert len(message) < 600
    assert "pass@" not in message
    assert remedy in got.value.remedy
    assert script.statuses == [reply.status] * tries
    assert len(script.requests) == tries  # a redirect is never followed
    if tries > 1:
        assert 15 <= script.clock.passed <= 30 * tries
        recovered = Script(reply, page_reply([{}] * 120, Age="0"))
        assert recovered.page().status == 200
        (attempt,) = recovered.attempts
        assert words in str(attempt.error)


CLOCKS = {  # The service's Date, and words of the warning.
    **dict.fromkeys((http_date(0), http_date(290), "yesterday", ""), ""),
    "Fri, 99 Dec 2026 23:59:59 GMT": "",
    http_date(310): "310 s ahead of",
    http_date(-310): "behind the clock of this machine",
}


@pytest.mark.parametrize(("date", "words"), CLOCKS.items(), ids=CLOCKS)
def test_clocks_that_differ(date: str, words: str, caplog: pytest.LogCaptureFixture) -> None:
    script = Script(page_reply(Date=date))
    script.run(lambda client: script.pages(client, 2))
    assert caplog.text.count("clock of this machine") == bool(words)  # one warning
    assert words in caplog.text


@pytest.mark.parametrize("body", [b"[]", b'{"a":', b"<html>"])
def test_a_whoami_that_is_no_object(body: bytes) -> None:
    with pytest.raises(Unavailable, match=r"/v2/whoami .*Tried 5 times"):
        Script(Reply(body=body)).run(lambda client: client.read_object("/v2/whoami"))
