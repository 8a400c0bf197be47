"""The rate limits: exact windows, headers on every response, honest waits ("Limits").

Not here: the arithmetic on every schedule (test_window).
"""

import asyncio
import math
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.sandbox.running import Running, clients_file, started

HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
EXEMPT = ["/healthz", "/readiness", "/docs/", "/docs/openapi.json", "/docs/nothing/here"]
COUNTED = [("POST", "/healthz"), ("HEAD", "/readiness"), ("GET", "/docs"), ("GET", "/docsy")]


def shown(answer: httpx.Response) -> tuple[int, int]:
    assert int(answer.headers["x-ratelimit-reset"]) > 0
    limit, remaining = (answer.headers[name] for name in HEADERS[:2])
    return int(limit), int(remaining)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A window so long that nothing leaves it, and many actors: each test takes its own."""
    text = "".join(
        f'[[clients]]\nid = "actor-{n}"\nsecret = "s"\nactor = "organization"\n' for n in range(20)
    )
    file = clients_file(tmp_path_factory.mktemp("clients"), text)
    with started("--window", "3600", "--usage", "50", "--clients", str(file)) as running:
        yield running


@pytest.fixture
def actor(slow: Running, unused: Iterator[int]) -> Iterator[httpx.Client]:
    """A client of ``slow`` whose window is empty."""
    with slow.client(slow.token(f"actor-{next(unused)}", "s")) as client:
        yield client


@pytest.fixture(scope="module")
def unused() -> Iterator[int]:
    """Numbers of actors that no test has had."""
    return iter(range(20))


def in_parallel(running: Running, token: str | None, count: int) -> list[int]:
    async def burst() -> list[int]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        limits = httpx.Limits(max_connections=count)
        async with httpx.AsyncClient(
            base_url=running.url, headers=headers, limits=limits, trust_env=False
        ) as client:
            answers = await asyncio.gather(*(client.get("/v2/partners") for _ in range(count)))
            return [answer.status_code for answer in answers]

    return asyncio.run(burst())


def test_five_then_a_refusal_as_documented(slow: Running, actor: httpx.Client) -> None:
    answers = [actor.get("/v2/whoami") for _ in range(6)]
    oldest_leaves = time.time() + 3600
    assert [shown(answer) for answer in answers] == [(5, n) for n in (4, 3, 2, 1, 0, 0)]
    assert [answer.status_code for answer in answers] == 5 * [200] + [429]
    for answer in answers:
        assert 0 <= int(answer.headers["x-ratelimit-reset"]) - oldest_leaves + 5 <= 7
    refusal = answers[-1]
    assert refusal.headers["content-type"] == "application/problem+json"
    wait = int(refusal.headers["retry-after"])
    assert 3590 <= wait <= 3600
    assert refusal.json() == {
        "type": f"{slow.url}/problems/too_many_requests",
        "title": "Too Many Requests",
        "status": 429,
        "detail": refusal.json()["detail"],
        "instance": "/v2/whoami",
        "retry_after_seconds": wait,
    }


def test_a_burst_never_gets_more_than_the_limit() -> None:
    with started("--rate", "5", "--window", "0.5", "--usage", "1") as running:
        token = running.token()
        first = in_parallel(running, token, 50)
        ends = time.monotonic() + 1.2
        while time.monotonic() < ends:
            in_parallel(running, token, 10)
        counted = running.statistics()
    assert 5 <= first.count(200) < 50
    assert counted["most_admitted_in_any_window"] == 5
    assert counted["admitted"] == counted["requests"]["/v2/partners"]["200"]
    assert counted["refused"] == counted["requests"]["/v2/partners"]["429"]
    assert counted["admitted"] <= 5 * math.ceil(
        (counted["last_admitted"] - counted["first_admitted"]) / 0.5 + 0.001
    )


def test_waiting_as_told_is_enough() -> None:
    with started("--rate", "2", "--window", "0.9", "--usage", "1") as running:
        with running.client(running.token()) as client:
            statuses = [client.get("/v2/whoami").status_code for _ in range(3)]
            assert statuses == [200, 200, 429]
            time.sleep(int(client.get("/v2/whoami").headers["retry-after"]))
            assert client.get("/v2/whoami").status_code == 200
        counted = running.statistics()
    assert counted["most_admitted_in_any_window"] == 2


def test_a_refused_request_takes_no_room() -> None:
    with (
        started("--rate", "1", "--window", "0.2", "--usage", "1") as running,
        running.client(running.token()) as client,
    ):
        admitted = 0
        ends = time.monotonic() + 0.7
        while time.monotonic() < ends:
            admitted += client.get("/v2/whoami").status_code == 200
            time.sleep(0.01)
    assert admitted in (3, 4)


def test_actors_have_windows_of_their_own(slow: Running, unused: Iterator[int]) -> None:
    for number in (next(unused), next(unused)):
        # Two tokens of one actor share its window.
        for expected in ([200, 200, 200], [200, 200, 429]):
            with slow.client(slow.token(f"actor-{number}", "s")) as client:
                assert [client.get("/v2/whoami").status_code for _ in range(3)] == expected
        counted = slow.statistics()["callers"][f"organization:actor-{number}"]
        assert (counted["admitted"], counted["refused"]) == (5, 1)


def test_the_unauthenticated_get_one_by_address_whatever_they_send() -> None:
    with started("--window", "3600", "--usage", "1") as running:
        with running.client() as nobody, running.client("invalid") as forger:
            first = nobody.get("/v2/whoami")
            second = forger.get("/v2/whoami")
            third = nobody.get("/nowhere", headers={"X-Forwarded-For": "192.0.2.1"})
        with running.client(running.token()) as known:
            fourth = known.get("/v2/whoami")
    assert [one.status_code for one in (first, second, third, fourth)] == [401, 429, 429, 200]
    assert [shown(one) for one in (first, second, third)] == [(1, 0), (1, 0), (1, 0)]
    assert shown(fourth) == (5, 4)


@pytest.mark.parametrize("path", EXEMPT)
def test_exempt_routes_show_the_window_and_use_none_of_it(
    slow: Running, actor: httpx.Client, path: str
) -> None:
    actor.get("/v2/whoami")
    assert [shown(actor.get(path)) for _ in range(6)] == 6 * [(5, 4)]
    with slow.client() as nobody:
        assert [shown(nobody.get(path)) for _ in range(3)] == 3 * [(1, 1)]


@pytest.mark.parametrize(("method", "path"), COUNTED)
def test_only_what_the_rule_names_is_exempt(actor: httpx.Client, method: str, path: str) -> None:
    assert shown(actor.request(method, path)) == (5, 4)


def test_exempt_routes_answer_where_the_window_is_full(actor: httpx.Client) -> None:
    statuses = [actor.get("/v2/whoami").status_code for _ in range(6)]
    assert statuses[-1] == 429
    answer = actor.get("/healthz")
    assert answer.status_code == 200
    assert shown(answer) == (5, 0)
    assert "retry-after" not in answer.headers


def test_without_a_limiter_there_are_no_headers(demo: httpx.Client) -> None:
    answers = [demo.get(path) for path in ("/v2/whoami", "/healthz", "/nowhere")]
    assert not any(name in answer.headers for answer in answers for name in HEADERS)


def test_the_statistics_are_not_limited_and_not_described(sandbox: Running) -> None:
    with sandbox.client() as client:
        described = client.get("/docs/openapi.json").json()["paths"]
        answer = client.get("/__sandbox__/statistics")
    assert not any("sandbox" in path for path in described)
    assert not any(name in answer.headers for name in HEADERS)


def test_the_statistics_count_without_a_limiter_too() -> None:
    with started("--rate", "0", "--window", "60", "--usage", "1") as running:
        with running.client(running.token()) as client:
            for _ in range(12):
                client.get("/v2/whoami")
        counted = running.statistics()
    assert counted["admitted"] == counted["most_admitted_in_any_window"] == 12
    assert counted["requests"] == {"/oauth/token": {"200": 1}, "/v2/whoami": {"200": 12}}
    assert counted["window_seconds"] == 60
