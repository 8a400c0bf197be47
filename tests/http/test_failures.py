"""What each failure means: retried or not, and the words that a user reads."""

import json
import re
from typing import Any

import pytest

from pipelines.core.errors import (
    AccessDenied,
    Forbidden,
    PartnerSyncError,
    ServiceError,
    Unavailable,
    UnexpectedAnswer,
)
from tests.http.conftest import Inside
from tests.http.support import Reply, Script, http_date, merchant, page_reply, problem_reply

UNCHANGED = "Nothing more was read; analysts still see the last published version."
# A fault of the sandbox and the words of the error if it does not pass.
PASSING = {
    "error-500": "failed to answer /v2/usage (status 500)",
    "error-502": "failed to answer /v2/usage (status 502)",
    "error-503-silent": "failed to answer /v2/usage (status 503)",
    "error-504": "failed to answer /v2/usage (status 504)",
    "html-502": "failed to answer /v2/usage (status 502)",
    "problem-cut": "failed to answer /v2/usage (status 500)",
    "problem-lies": r'says: "\x1b[2J\x00long long',
    "html-200": "is a page of HTML, perhaps of a proxy",
    "truncated": "The answer is not a page of a list",
    "empty-body": "The answer is not a page of a list",
    "no-object": "The answer is not a page of a list",
    "no-pagination": "The answer is not a page of a list",
    "gzip-lie": "cannot be decompressed",
}


@pytest.mark.parametrize(("fault", "words"), PASSING.items())
def test_a_failure_that_may_pass(inside: Inside, fault: str, words: str) -> None:
    inside.fault(fault, path="/v2/usage", times=1)
    recovered = inside.desk()
    assert recovered.page().status == 200
    assert len(recovered.attempts) == 1
    inside.fault(fault, path="/v2/usage")
    lasting = inside.desk()
    before = lasting.clock.passed
    with pytest.raises(Unavailable) as got:
        lasting.page()
    assert words in str(got.value)
    assert str(got.value).endswith(f"Tried 5 times. {UNCHANGED}")
    assert got.value.remedy
    assert len(lasting.attempts) == 5
    assert all(attempt.error for attempt in lasting.attempts)
    assert 0 < lasting.clock.passed - before <= 16


def test_a_gzip_bomb(inside: Inside) -> None:
    inside.fault("gzip-bomb", path="/v2/usage", times=1)
    desk = inside.desk()
    assert desk.page().status == 200
    assert desk.attempts[0].error == "The answer to /v2/usage is larger than 64 MiB."
    assert desk.attempts[0].body is None


# A record that only a lenient reader accepts costs no page.
ODD = ["nan", "infinity", "huge", "surrogate", "deep", "name-twice", "no-record", "null-key"]


@pytest.mark.parametrize("fault", ODD)
def test_an_odd_record_is_not_a_broken_page(inside: Inside, fault: str) -> None:
    inside.fault(fault, path="/v2/usage")
    desk = inside.desk()
    assert desk.page().status == 200
    assert desk.attempts == []


@pytest.mark.parametrize(("rows", "accepted"), [(120, True), (121, False)])
def test_a_page_of_far_more_records_than_its_limit(rows: int, *, accepted: bool) -> None:
    desk = Script(page_reply([{"id": row} for row in range(rows)])).desk()
    if accepted:
        assert desk.page(limit=10).status == 200
        return
    with pytest.raises(Unavailable, match=r"more than 120 records.*Tried 5 times"):
        desk.page(limit=10)


# Client, path, error, words of the message, words of the remedy.
PARTNER = {
    "wrong actor": ("merchant", Forbidden, "actor type of connection `acme` may not", "`skip`"),
    "missing scope": ("narrow", Forbidden, "lacks the OAuth scope", "grant the scope"),
}


@pytest.mark.parametrize("case", PARTNER.values(), ids=PARTNER.keys())
def test_a_partner_route_that_is_not_open(
    inside: Inside, case: tuple[str, type[PartnerSyncError], str, str]
) -> None:
    client_id, error, words, remedy = case
    desk = inside.desk(client_id=client_id)
    with pytest.raises(error, match=words) as got:
        desk.page("/v2/usage")
    assert UNCHANGED in str(got.value)
    assert remedy in got.value.remedy
    assert desk.statuses == [403]


# What becomes of the organization or the login, and how it is undone.
ENDED, ACTIVE = {"trial": "ended", "billing": False}, {"trial": "active"}
ENABLED, DISABLED = {"enabled": True}, {"enabled": False}
ADMIN: dict[str, list[str]]
NOBODY: dict[str, list[str]]
ADMIN, NOBODY = {"mappings": ["companyAdmin"]}, {"mappings": []}
MERCHANT: dict[str, tuple[Any, Any, str, str]] = {
    "missing mapping": (NOBODY, ADMIN, "lacks a mapping", "companyAdmin"),
    "trial ended": (ENDED, ACTIVE, "free trial of connection `shop` has ended", "Enable billing"),
    "organization disabled": (
        DISABLED,
        ENABLED,
        "organization of connection `shop` is",
        "activate",
    ),
}


@pytest.mark.parametrize("case", MERCHANT.values(), ids=MERCHANT.keys())
def test_a_merchant_route_that_is_not_open(inside: Inside, case: tuple[Any, Any, str, str]) -> None:
    change, undo, words, remedy = case
    (key,) = inside.control("GET", "/keys")
    place = (
        ("PUT", "/logins/anna")
        if "mappings" in change
        else ("PATCH", f"/organizations/{key['organization']}")
    )
    inside.control(*place, change)
    desk = inside.merchant_desk()
    try:
        with pytest.raises(AccessDenied, match=words) as got:
            desk.page("/v2/invoices")
    finally:
        inside.control(*place, undo)
    assert UNCHANGED in str(got.value)
    assert remedy in got.value.remedy
    assert len(desk.attempts) == 1


def test_a_disabled_organization_costs_no_second_token() -> None:
    script = Script(problem_reply(401, "API access is not active for this organization."))
    with pytest.raises(AccessDenied, match="organization of connection `acme` is disabled"):
        script.desk().page()
    assert len(script.token_requests) == 1


def test_a_revoked_key() -> None:
    script = Script(problem_reply(401, "The token is invalid or missing."))
    with pytest.raises(AccessDenied, match="API key of connection `shop` is not acc") as got:
        script.desk(merchant()).page()
    assert "not revoked" in got.value.remedy


# Status, and the error that is not tried again.
LASTING: list[tuple[int, type[ServiceError], str]] = [
    (304, UnexpectedAnswer, "(304)"),
    (400, UnexpectedAnswer, 'does not know this answer. The service says: "why"'),
    (404, UnexpectedAnswer, "/v2/usage does not exist at http://127.0.0.1:8000 (404)"),
    (410, UnexpectedAnswer, "(410)"),
    (422, UnexpectedAnswer, "(422)"),
    (501, UnexpectedAnswer, "(501)"),
    (511, UnexpectedAnswer, "(511)"),
    (403, Forbidden, "do not open this route"),
]


@pytest.mark.parametrize(("status", "error", "words"), LASTING)
def test_a_failure_that_does_not_pass(status: int, error: type[ServiceError], words: str) -> None:
    desk = Script(problem_reply(status, "why")).desk()
    with pytest.raises(error, match=re.escape(words)) as got:
        desk.page()
    assert got.value.remedy
    assert desk.statuses == [status]


@pytest.mark.parametrize("status", [204, 408, 409, 425, 520])
def test_other_statuses_may_pass(status: int) -> None:
    desk = Script(Reply(status), page_reply()).desk()
    assert desk.page().status == 200
    assert desk.statuses == [status]


# Where a redirect leads, and what the message says of it.
PLACES = {
    "https://elsewhere.test/login?session=1#x": "https://elsewhere.test/login.",
    "https://me:pass-word@elsewhere.test/": "https://elsewhere.test/.",
    "/v3/usage?offset=1": "/v3/usage.",
    "http:\\\\elsewhere.test/x": "",
    "http://host:port/": "an address that is not valid.",
    "http://[::1": "an address that is not valid.",
    "\\\\\x7f": "",
    "//elsewhere.test": "//elsewhere.test.",
}


@pytest.mark.parametrize("status", [301, 307])
@pytest.mark.parametrize(("location", "place"), PLACES.items())
def test_a_redirect_is_never_followed(location: str, place: str, status: int) -> None:
    script = Script(Reply(status, headers={"Location": location}))
    with pytest.raises(UnexpectedAnswer, match=r"redirects /v2/usage to .* not followed") as got:
        script.desk().page()
    assert place in str(got.value)
    assert "base_url" in got.value.remedy
    assert "session" not in str(got.value)
    assert "pass-word" not in str(got.value)
    assert len(script.requests) == 1


def test_a_cached_page_is_asked_for_again() -> None:
    script = Script(page_reply(Age="17"), page_reply(Age="0"))
    desk = script.desk()
    assert desk.page().headers["age"] == "0"
    assert [request.headers["cache-control"] for _, request in script.requests] == ["no-cache"] * 2
    assert "17 s old" in str(desk.attempts[0].error)


# Seconds that the service's clock is ahead, and whether it is mentioned or refused.
CLOCKS = [
    (0, "fine"),
    (290, "fine"),
    (310, "warned"),
    (-310, "warned"),
    (80_000, "warned"),
    (90_000, "refused"),
    (-90_000, "refused"),
]


@pytest.mark.parametrize(("ahead", "outcome"), CLOCKS)
def test_a_clock_that_differs(ahead: float, outcome: str, caplog: pytest.LogCaptureFixture) -> None:
    script = Script(page_reply(Date=http_date(ahead)))
    if outcome == "refused":
        with pytest.raises(
            UnexpectedAnswer, match="this machine's clock 2026-11-24 12:00:0"
        ) as got:
            script.desk().page()
        assert f"{'ahead of' if ahead > 0 else 'behind'} this machine" in str(got.value)
        return
    script.desk().page()
    assert ("this machine's clock" in caplog.text) is (outcome == "warned")


@pytest.mark.parametrize("date", ["yesterday", "", "Fri, 31 Dec 9999 23:59:59 -2359"])
def test_a_date_that_cannot_be_read_is_no_difference(date: str) -> None:
    assert Script(page_reply(Date=date)).desk().page().status == 200


HOSTILE = [
    b"",
    b"null",
    b"[]",
    b'{"title": "half',
    b'{"title": "\xff"}',
    b'{"title": "\\ud800"}',
    b'{"title":' + b"[" * 100_000,
    b'{"x":' + b"9" * 5000 + b"}",
    b'{"title": 7}',
]


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: repr(body[:14]))
def test_a_hostile_problem_leaves_the_status(body: bytes) -> None:
    with pytest.raises(Forbidden, match="do not open this route"):
        Script(Reply(403, body)).desk().page()


def test_a_problem_cannot_write_on_the_terminal() -> None:
    detail = "\x1b[31mred\x1b[0m \u202e left " + "long " * 10_000
    with pytest.raises(Forbidden) as got:
        Script(problem_reply(403, detail)).desk().page()
    assert str(got.value).isprintable()
    assert len(str(got.value)) < 600


@pytest.mark.parametrize("body", [b"[]", b"7", b'{"a":', b"<html>", json.dumps("x").encode()])
def test_a_whoami_that_is_no_object(body: bytes) -> None:
    with pytest.raises(Unavailable, match=r"/v2/whoami .*Tried 5 times"):
        Script(Reply(body=body)).desk().run(lambda client: client.whoami())
