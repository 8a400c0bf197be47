"""Whatever a service answers: never a request before a Retry-After is over, never one too many."""

from dataclasses import dataclass, field

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.api.budget import Budget
from pipelines.api.client import Client
from pipelines.api.retry import RATE_LIMITED_IN_A_ROW, TRIES
from pipelines.api.terms import Terms
from pipelines.api.token import ClientCredentials
from pipelines.api.wire import Wire
from pipelines.errors import ServiceError
from pipelines.settings import Connection
from pipelines.state.runs import Call
from pipelines.streams.usage import USAGE
from tests import virtual
from tests.api.provider import HIDDEN
from tests.virtual import CLOCK, seconds

PAGE = b'{"data": [], "pagination": {"limit": 1, "offset": 0, "has_more": false}}'
BODIES = [PAGE, PAGE[:-5], b"<html>", b"{}"]
REPLIES = st.one_of(
    st.tuples(st.sampled_from([429, 503, 500, 502]), st.none() | st.integers(0, 310)),
    st.tuples(st.just(200), st.sampled_from([0, 1, 2, 3])),
)


@dataclass
class Moody:
    """A service that answers from a script, then for ever with 500; notes when it was asked."""

    script: list[tuple[int, int | None]]
    asked: list[float] = field(default_factory=list)
    free_from: float = 0.0

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.host == "login":
            return httpx.Response(200, json={"access_token": "t", "expires_in": 99999})
        self.asked.append(seconds())
        assert seconds() >= self.free_from
        status, said = self.script.pop(0) if self.script else (500, None)
        if status == httpx.codes.OK:
            return httpx.Response(200, content=BODIES[said or 0])
        headers = {} if said is None else {"Retry-After": str(said)}
        self.free_from = seconds() + (said or 0)
        return httpx.Response(status, headers=headers)

    async def record(self, _call: Call) -> None:
        """Keep nothing."""


async def read(service: Moody, times: int = 1) -> str:
    connection = Connection("default", "https://service", "https://login", "api", "me", HIDDEN)
    budget, token = Budget(CLOCK, Terms(1000, 0.0)), ClientCredentials(connection, CLOCK)
    wire = Wire(httpx.MockTransport(service), budget, service.record, CLOCK)
    async with httpx.AsyncClient(base_url="https://service", transport=wire, auth=token) as http:
        client = Client(http, token, budget)
        return "".join([await said(client) for _time in range(times)])


async def said(client: Client) -> str:
    try:
        return str(await client.page(USAGE, 0))
    except ServiceError as error:
        return str(error)


@given(st.lists(REPLIES, max_size=30))
def test_never_early_and_never_too_often(script: list[tuple[int, int | None]]) -> None:
    refused = sum(status == 429 for status, _said in script)
    service = Moody(list(script))
    words = virtual.run(read(service))
    assert words
    assert len(service.asked) <= max(TRIES.values()) + refused
    assert len(service.asked) <= max(TRIES.values()) * RATE_LIMITED_IN_A_ROW


@settings(max_examples=30)
@given(st.lists(REPLIES, max_size=30))
def test_who_asks_after_a_failure_is_not_early_either(script: list[tuple[int, int | None]]) -> None:
    """Another list, a page asked for ahead: `Moody` refuses who comes too early."""
    assert virtual.run(read(Moody(list(script)), times=3))
