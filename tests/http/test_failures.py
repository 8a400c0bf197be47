"""What each failure means: retried or not, and the words that a user reads."""

import json
import re

import httpx
import pytest

from pipelines.core.errors import (
    AccessDenied,
    Forbidden,
    PartnerSyncError,
    Unavailable,
    UnexpectedAnswer,
)
from tests.http.support import (
    UNCHANGED,
    Harness,
    Reply,
    Script,
    http_date,
    merchant,
    page_reply,
    partner,
    problem_reply,
)

HTML = b" <html>Bad gateway</html>"
TRANSIENT = {
    "500": (problem_reply(500, "why"), 'status 500: it may pass. The service says: "why"'),
    "502, HTML": (Reply(502, HTML), "with status 502: it may pass."),
    "503": (Reply(503), "with status 503"),
    "500, control characters": (problem_reply(500, "\x1b[2J"), r'says: "\x1b[2J"'),
    "no content": (Reply(204), "with status 204"),
    "408": (Reply(408), "with status 408"),
    "520": (Reply(520), "with status 520"),
    "HTML instead of JSON": (Reply(200, HTML), "is a page of HTML, perhaps of a proxy"),
    "body cut with a matching length": (Reply(200, page_reply().body[:-9]), "not a page of a list"),
    "empty body": (Reply(200), "not a page of a list"),
    "not an object": (Reply(200, b"[]"), "not a page of a list"),
    "no gzip": (
        Reply(200, page_reply().body, {"Content-Encoding": "gzip"}),
        "cannot be decompressed",
    ),
    "more than twice its limit plus 100 records": (page_reply([{}] * 121), "more than 120 records"),
    "answered by a cache": (page_reply(Age="17"), "its answer is 17 s old"),
}


@pytest.mark.parametrize(("reply", "words"), TRANSIENT.values(), ids=TRANSIENT)
def test_a_failure_that_may_pass(reply: Reply, words: str) -> None:
    recovered = Script(reply, page_reply([{}] * 120, Age="0")).harness()
    assert recovered.page().status == 200
    assert recovered.statuses == [reply.status]
    assert words in str(recovered.attempts[0].error)
    script = Script(reply)
    lasting = script.harness()
    with pytest.raises(Unavailable) as got:
        lasting.page()
    assert words in str(got.value)
    assert str(got.value).endswith(f"Tried 5 times. {UNCHANGED}")
    assert "partner-sync sync" in got.value.remedy
    assert len(script.requests) == len(lasting.attempts) == 5
    assert 15 <= lasting.clock.passed <= 19


# Status, the service's words, the error, words of the message, words of the remedy.
LASTING: dict[str, tuple[int, str, type[PartnerSyncError], str, str]] = {
    "organization disabled": (
        *(401, "API access is not active for this organization."),
        *(AccessDenied, "the organization of connection `shop` is disabled", "activate"),
    ),
    "trial ended": (
        *(403, "The trial has ended and billing is not enabled."),
        *(Forbidden, "the free trial of connection `shop` has ended", "Enable billing"),
    ),
    "missing mapping": (403, "Requires companyAdmin", Forbidden, "lacks a mapping", "companyAdmin"),
    "missing scope": (403, "missing SCOPE", Forbidden, "lacks the OAuth scope", "grant the scope"),
    "wrong actor": (403, "actor_type", Forbidden, "actor type of connection", "another actor"),
    "403": (403, "why", Forbidden, "do not open this route", "`skip` of connection `shop`"),
    "400": (400, "why", UnexpectedAnswer, "document does not know this status. The serv", "check"),
    "404": (404, "why", UnexpectedAnswer, "does not exist at http://127.0.0.1:8000", "base_url"),
    "304": (304, "", UnexpectedAnswer, "status 304", "check"),
    "501": (501, "", UnexpectedAnswer, "status 501", "check"),
}


@pytest.mark.parametrize("case", LASTING.values(), ids=LASTING)
def test_a_failure_that_does_not_pass(
    case: tuple[int, str, type[PartnerSyncError], str, str],
) -> None:
    status, detail, error, words, remedy = case
    script = Script(problem_reply(status, detail))
    harness = script.harness(merchant())
    with pytest.raises(error, match=re.escape(words)) as got:
        harness.page()
    assert remedy in got.value.remedy
    assert str(got.value).endswith(UNCHANGED)
    assert harness.statuses == [status]


@pytest.mark.parametrize(("client", "words"), [("merchant", "actor type"), ("narrow", "scope")])
def test_the_words_of_the_sandbox(
    sandbox_app: httpx.ASGITransport, client: str, words: str
) -> None:
    with pytest.raises(Forbidden, match=words):
        Harness(partner(client_id=client), sandbox_app).page()


# Where a redirect leads, and what the message says of it.
PLACES = {
    "https://elsewhere.test/login?session=1#x": "a redirect to https://elsewhere.test/login.",
    "https://me:pass-word@elsewhere.test/": "https://elsewhere.test/.",
    "/v3/usage?offset=1": "a redirect to /v3/usage.",
    "http:\\\\elsewhere.test/x": "a redirect to http:",
    "http://host:port/": "an address that is not valid.",
    "\\\\\x7f": "a redirect to",
    "": "a redirect to no address.",
}


@pytest.mark.parametrize("status", [301, 307])
@pytest.mark.parametrize(("location", "place"), PLACES.items())
def test_a_redirect_is_never_followed(location: str, place: str, status: int) -> None:
    script = Script(Reply(status, headers={"Location": location}))
    with pytest.raises(UnexpectedAnswer, match=r"was not followed, so no credentials") as got:
        script.harness().page()
    assert place in str(got.value)
    assert "base_url" in got.value.remedy
    assert "session" not in str(got.value)
    assert "pass-word" not in str(got.value)
    assert len(script.requests) == 1


# Seconds that the service's clock is ahead, and words of a warning or an error.
CLOCKS = [(0, ""), (290, ""), (310, "310 s ahead of"), (-310, "behind the clock of this machine")]
REFUSED = [(90_000, "ahead of the clock of this machine, which says 2026-11-24 12:00:0")]


@pytest.mark.parametrize(("ahead", "words"), CLOCKS + REFUSED)
def test_clocks_that_differ(ahead: float, words: str, caplog: pytest.LogCaptureFixture) -> None:
    harness = Script(page_reply(Date=http_date(ahead))).harness()
    if abs(ahead) < 86_400:
        harness.page()
        assert words in caplog.text
        assert bool(caplog.text) is bool(words)
    else:
        with pytest.raises(UnexpectedAnswer, match=words):
            harness.page()


@pytest.mark.parametrize("date", ["yesterday", "", "Fri, 99 Dec 2026 23:59:59 GMT"])
def test_a_date_that_cannot_be_read_is_no_difference(date: str) -> None:
    assert Script(page_reply(Date=date)).harness().page().status == 200


HOSTILE = [
    b"null",
    b'{"title": "half',
    b'{"title": "\xff"}',
    b'{"title": "\\ud800"}',
    b'{"title":' + b"[" * 100_000,
    b'{"x":' + b"9" * 5000 + b"}",
    b'{"title": 7}',
    json.dumps({"title": "\x1b[31mred\x1b[0m \u202e left " + "long " * 10_000}).encode(),
]


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: repr(body[:14]))
def test_a_hostile_problem(body: bytes) -> None:
    with pytest.raises(Forbidden, match="do not open this route") as got:
        Script(Reply(403, body)).harness().page()
    assert str(got.value).isprintable()
    assert len(str(got.value)) < 600


@pytest.mark.parametrize("body", [b"[]", b'{"a":', b"<html>"])
def test_a_whoami_that_is_no_object(body: bytes) -> None:
    with pytest.raises(Unavailable, match=r"/v2/whoami .*Tried 5 times"):
        Script(Reply(body=body)).harness().run(lambda client: client.whoami())
