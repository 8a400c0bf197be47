"""The wire: who takes a slot, what is learned of an answer, what the ledger is told of a call."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

import httpx
import pytest

from pipelines.api.budget import Budget
from pipelines.api.terms import Terms
from pipelines.api.wire import Wire
from pipelines.errors import ContractBroken, Unavailable
from pipelines.state.runs import Call
from tests import virtual
from tests.virtual import CLOCK, EPOCH, seconds

SIGNED = {"Authorization": "Bearer t"}
Service = Callable[[httpx.Request], Coroutine[None, None, httpx.Response]]


@dataclass
class Line:
    """A wire to a service that answers as told, and what was recorded of it."""

    service: Service
    limit: int = 5
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.budget = Budget(CLOCK, Terms(self.limit, 1.0))
        wire = Wire(httpx.MockTransport(self.service), self.budget, self.record, CLOCK)
        self.http = httpx.AsyncClient(base_url="http://service", transport=wire)

    async def record(self, call: Call) -> None:
        self.calls.append(call)

    async def waits(self, count: int) -> list[float]:
        """Return how long each of some requests sent at once waits for its slot, rounded."""
        begun = len(self.calls)
        await asyncio.gather(*(self.http.get("/", headers=SIGNED) for _ in range(count)))
        return [round(call.waited, 1) for call in self.calls[begun:]]


def replying(status: int, headers: dict[str, str] | None = None, took: float = 0.0) -> Service:
    async def service(_request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(took)
        return httpx.Response(status, headers=headers)

    return service


def test_unsigned_requests_take_no_slot_and_signed_ones_do() -> None:
    async def main() -> tuple[list[float], list[float]]:
        line = Line(replying(200), limit=2)
        await asyncio.gather(*(line.http.get("/") for _ in range(20)))
        unsigned = [call.waited for call in line.calls]
        return unsigned, await line.waits(5)

    unsigned, signed = virtual.run(main())
    assert unsigned == [0.0] * 20
    assert signed == [0.0, 0.0, 1.0, 1.0, 2.0]


def test_a_call_is_recorded_in_full() -> None:
    headers = {"x-RATELIMIT-remaining": " 3 ", "X-Request-ID": "r-1"}

    async def main() -> Line:
        line = Line(replying(200, headers, took=0.25), limit=1)
        for offset in (0, 500):
            await line.http.get(
                "/v2/usage",
                params={"limit": 500, "offset": offset},
                headers=SIGNED,
                extensions={"stream": "usage"},
            )
        return line

    first, second = virtual.run(main()).calls
    assert first == Call(
        stream="usage",
        method="GET",
        path="/v2/usage",
        query="limit=500&offset=0",
        sent_at=first.sent_at,
        waited=0.0,
        took=0.25,
        status=200,
        remaining=3,
        request_id="r-1",
        error=None,
    )
    assert second.query == "limit=500&offset=500"
    assert second.waited == pytest.approx(1.001)
    # The wait for the budget is not part of the answer's time, and sending comes after it.
    assert second.took == 0.25
    sent = [round((call.sent_at - EPOCH).total_seconds() - 1000, 3) for call in (first, second)]
    assert sent == [0, 1.251]


@pytest.mark.parametrize(
    "failure", [httpx.ConnectError, httpx.ReadTimeout, httpx.RemoteProtocolError]
)
def test_a_failure_is_recorded_by_its_class_and_keeps_its_slot(
    failure: type[httpx.TransportError],
) -> None:
    async def service(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.5)
        raise failure("the words of the network", request=request)

    async def main() -> Line:
        line = Line(service, limit=1)
        for _ in range(2):
            with pytest.raises(failure):
                await line.http.get("/", headers=SIGNED)
        return line

    first, second = virtual.run(main()).calls
    assert (first.error, first.status, first.remaining) == (failure.__name__, None, None)
    assert first.took == 0.5
    assert second.waited == pytest.approx(1.001)


def test_a_cancelled_call_is_recorded_too() -> None:
    async def main() -> Line:
        line = Line(replying(200, took=10))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await line.http.get("/", headers=SIGNED)
        return line

    (call,) = virtual.run(main()).calls
    assert (call.error, call.status, call.took) == ("CancelledError", None, 2)


def test_a_cancelled_wait_for_a_slot_was_no_call() -> None:
    async def main() -> Line:
        line = Line(replying(200), limit=1)
        await line.http.get("/", headers=SIGNED)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await line.http.get("/", headers=SIGNED)
        return line

    assert len(virtual.run(main()).calls) == 1


# The status of an answer that states a limit of 1, and whether that limit is the actor's.
LEARNING = {200: True, 204: True, 403: True, 401: False, 404: False, 429: False, 500: False}


@pytest.mark.parametrize(("status", "learns"), LEARNING.items())
def test_the_limit_is_learned_from_what_an_actor_is_answered(status: int, learns: bool) -> None:  # noqa: FBT001
    async def main() -> list[float]:
        line = Line(replying(status, {"X-RateLimit-Limit": "1", "Retry-After": "0"}))
        await line.http.get("/", headers=SIGNED)
        await asyncio.sleep(2)
        return await line.waits(3)

    slow = virtual.run(main())
    assert (slow == [0.0, 1.0, 2.0]) is learns
    assert learns or max(slow) < 0.2


@pytest.mark.parametrize("status", [200, 403, 429])
def test_what_is_said_to_the_unsigned_is_not_for_the_actor(status: int) -> None:
    """Theirs is the bucket of the address, one a second (Limits, 1)."""

    async def main() -> list[float]:
        line = Line(replying(status, {"X-RateLimit-Limit": "1", "Retry-After": "60"}))
        await line.http.get("/")
        return await line.waits(5)

    assert virtual.run(main()) == [0.0] * 5


@pytest.mark.parametrize("limit", ["", "0", "-1", "five", "٣", "1.5", "9" * 5000, "1, 5"])
def test_a_limit_that_is_none_teaches_nothing(limit: str) -> None:
    async def main() -> list[float]:
        line = Line(replying(200, {b"X-RateLimit-Limit": limit.encode()}))  # type: ignore[dict-item]
        await line.http.get("/", headers=SIGNED)
        await asyncio.sleep(2)
        return await line.waits(6)

    assert virtual.run(main()) == [0, 0, 0, 0, 0, 1.0]


@pytest.mark.parametrize(("retry_after", "least"), [("7", 7), ("299", 299), (None, 1)])
def test_a_429_stops_everybody_before_its_slot_is_given_back(
    retry_after: str | None, least: float
) -> None:
    """The fast one is refused while slow ones fill the budget and others wait for a slot."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    sent: list[float] = []

    async def service(_request: httpx.Request) -> httpx.Response:
        sent.append(seconds())
        if len(sent) == 1:
            await asyncio.sleep(0.1)
            return httpx.Response(429, headers=headers)
        await asyncio.sleep(0.3)
        return httpx.Response(200)

    async def main() -> list[float]:
        line = Line(service, limit=2)
        await line.waits(6)
        return [moment - 1000 for moment in sent]

    refused, together, *after = virtual.run(main())
    assert refused == together == 0
    assert len(after) == 4
    assert least - 1e-6 <= min(after) - 0.1 <= least + 0.1 + 1e-6


def test_the_ledger_is_written_outside_the_slot() -> None:
    """A disk that takes two seconds a line does not slow the others down."""

    class Slow(Line):
        async def record(self, call: Call) -> None:
            await asyncio.sleep(2)
            await super().record(call)

    async def main() -> list[float]:
        return await Slow(replying(200), limit=1).waits(3)

    assert virtual.run(main()) == [0, 1.0, 2.0]


class Body(httpx.AsyncByteStream):
    """Some bytes again and again, with a pause before each."""

    def __init__(self, chunk: bytes, count: int, pause: float = 0.0) -> None:
        self.chunk, self.count, self.pause = chunk, count, pause
        self.closed = False

    async def __aiter__(self):  # type: ignore[no-untyped-def] # noqa: ANN204
        for _ in range(self.count):
            await asyncio.sleep(self.pause)
            yield self.chunk

    async def aclose(self) -> None:
        self.closed = True


def fetched(body: Body, status: int = 200, encoding: str | None = None, *, signed: bool) -> bytes:
    headers = {} if encoding is None else {"Content-Encoding": encoding}

    async def service(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers=headers, stream=body)

    async def main() -> bytes:
        answer = await Line(service).http.get("/", headers=SIGNED if signed else {})
        return answer.content

    return virtual.run(main())


KIB = b"x" * 1024
MIB = KIB * 1024


@pytest.mark.parametrize(
    ("status", "signed", "mebibytes"), [(200, True, 32), (500, True, 32), (401, True, 0.25)]
)
def test_a_body_is_capped_on_the_wire(status: int, mebibytes: float, *, signed: bool) -> None:
    allowed = int(mebibytes * 1024)
    assert len(fetched(Body(KIB, allowed), status, signed=signed)) == allowed * 1024
    body = Body(KIB, allowed + 1)
    with pytest.raises(ContractBroken, match=f"/: answer larger than {mebibytes:g} MiB refused"):
        fetched(body, status, signed=signed)
    assert body.closed


def test_a_token_is_small() -> None:
    with pytest.raises(ContractBroken, match=r"larger than 0\.25 MiB"):
        fetched(Body(MIB, 1), signed=False)


@pytest.mark.parametrize("encoding", ["zstd", "br", "deflate", "gzip, gzip"])
@pytest.mark.parametrize("signed", [True, False])
def test_only_encodings_that_were_asked_for_are_read(encoding: str, *, signed: bool) -> None:
    body = Body(b"", 0)
    with pytest.raises(ContractBroken, match="encoding that was not asked for"):
        fetched(body, encoding=encoding, signed=signed)
    assert body.closed


def test_a_body_that_drips_is_given_up() -> None:
    body = Body(b"x", 1000, pause=29.0)
    with pytest.raises(
        Unavailable, match=r"/: answer broke off after \d+ bytes \(not whole in 120 s\)$"
    ):
        fetched(body, signed=True)
    assert body.closed
