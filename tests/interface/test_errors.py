"""Chapter 7 of the interface, "Errors": members of a problem, types, statuses."""

from dataclasses import dataclass
from http import HTTPStatus

import httpx
import pytest

from tests.interface.calling import MEMBERS, PROBLEM, Limited, Surfaces, assert_problem
from tests.sandbox.merchants import SECRETS
from tests.sandbox.running import Running


@dataclass(frozen=True)
class Failure:
    """A request that fails: as whom, and with what status."""

    status: int
    path: str
    method: str = "GET"
    key_id: str = ""
    bearer: bool = False

    def __str__(self) -> str:
        return f"{self.status} {self.method} {self.path}"


FAILURES = [
    Failure(400, "/v2/usage?limit=501", bearer=True),
    Failure(400, "/v2/invoices?offset=-1", key_id="admin"),
    Failure(401, "/v2/partners"),
    Failure(401, "/v2/users"),
    Failure(403, "/v2/users", key_id="nothing"),
    Failure(404, "/v2/customers/" + "0" * 24, key_id="admin"),
    Failure(404, "/v2/nothing/here"),
    Failure(404, "/nowhere"),
    Failure(405, "/v2/whoami", "DELETE", bearer=True),
    Failure(415, "/v2/payment-method-requests", "POST", key_id="admin"),
]
every = pytest.mark.parametrize("failure", FAILURES, ids=str)


def failed(whole: Surfaces, failure: Failure) -> httpx.Response:
    token = whole.running.token("whole", "s-whole") if failure.bearer else None
    key = SECRETS.get(failure.key_id)
    with whole.running.client(token, key) as client:
        answer = client.request(failure.method, failure.path)
    assert answer.status_code == failure.status
    return answer


@every
def test_7_1_failures_are_problem_json(whole: Surfaces, failure: Failure) -> None:
    answer = failed(whole, failure)
    assert answer.headers["content-type"] == PROBLEM
    assert set(answer.json()) - {"errors"} == MEMBERS


@every
def test_7_2_type_is_a_uri_below_problems(whole: Surfaces, failure: Failure) -> None:
    kind = failed(whole, failure).json()["type"]
    base, _, slug = kind.rpartition("/problems/")
    assert base == whole.running.url
    assert slug.replace("_", "").isalpha()


def test_7_3_the_slugs_seen_are_unauthorized_and_too_many_requests(slow: Limited) -> None:
    with slow.stranger() as client:
        types = [client.get("/v2/whoami").json()["type"] for _ in range(2)]
    base = f"{slow.running.url}/problems/"
    assert types == [base + "unauthorized", base + "too_many_requests"]


@every
def test_7_4_title_is_the_short_status_title(whole: Surfaces, failure: Failure) -> None:
    title = failed(whole, failure).json()["title"]
    assert title == HTTPStatus(failure.status).phrase


@every
def test_7_5_status_is_the_http_status(whole: Surfaces, failure: Failure) -> None:
    status = failed(whole, failure).json()["status"]
    assert type(status) is int
    assert status == failure.status


@every
def test_7_6_detail_is_an_explanation_for_people(whole: Surfaces, failure: Failure) -> None:
    detail = failed(whole, failure).json()["detail"]
    assert isinstance(detail, str)
    assert len(detail.split()) > 2


@every
def test_7_7_instance_is_the_path_that_failed(whole: Surfaces, failure: Failure) -> None:
    instance = failed(whole, failure).json()["instance"]
    assert instance == failure.path.partition("?")[0]


def test_7_8_the_429_adds_retry_after_seconds_and_nothing_else_does(
    slow: Limited, whole: Surfaces
) -> None:
    with slow.stranger() as client:
        answer = [client.get("/v2/whoami") for _ in range(2)][-1]
    body = assert_problem(answer, 429)
    assert set(body) == MEMBERS | {"retry_after_seconds"}
    assert type(body["retry_after_seconds"]) is int
    assert body["retry_after_seconds"] == int(answer.headers["retry-after"])
    others = [failed(whole, failure).json() for failure in FAILURES]
    assert not [one for one in others if "retry_after_seconds" in one]


def test_7_9_a_401_says_that_the_token_is_invalid_or_missing(nobody: httpx.Client) -> None:
    for path in ("/v2/partners", "/v2/invoices"):
        found = assert_problem(nobody.get(path), 401)
        assert "token is invalid or missing" in found["detail"]
        assert found["title"] == "Unauthorized"


@pytest.mark.parametrize("path", ["/v2/usage", "/v2/partners"])
def test_7_10_a_403_is_told_from_a_401_by_valid_credentials(whole: Surfaces, path: str) -> None:
    with whole.running.client(whole.running.token("merchant", "s-merchant")) as client:
        assert assert_problem(client.get(path), 403)["title"] == "Forbidden"
    with whole.running.client("no.such.token") as client:
        assert_problem(client.get(path), 401)


def test_7_11_a_429_carries_retry_after(slow: Limited) -> None:
    with slow.actor() as client:
        answer = [client.get("/v2/whoami") for _ in range(6)][-1]
    assert assert_problem(answer, 429)["title"] == "Too Many Requests"
    assert answer.headers["retry-after"].isdigit()


@pytest.mark.parametrize("status", ["400", "404", "409", "413", "415", "431"])
def test_7_12_other_statuses_are_assumed(whole: Surfaces, status: str) -> None:
    responses = whole.described()["components"]["responses"]
    assert responses[status]["x-assumed"] is True
    assert not [one for one in ("401", "403", "429") if "x-assumed" in responses[one]]


def test_7_13_a_server_error_is_assumed_to_be_a_problem_too(
    whole: Surfaces, undone: Running
) -> None:
    undone.fault("error-500", times=1)
    found = assert_problem(whole.bearer.get("/v2/usage"), 500)
    assert found["type"] == f"{undone.url}/problems/internal_server_error"
    assert whole.bearer.get("/v2/usage").status_code == 200
