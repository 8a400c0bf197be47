"""All times of the service come from the clock that it is given."""

import asyncio
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import jwt

from sandbox.faults.catalogue import kind_of
from sandbox.faults.kind import Fault
from sandbox.options import Delay, Limits, Trials
from tests.sandbox.in_process import URL, MovedClock, fetch_token, transport
from tests.sandbox.running import API_KEY

NOW = 1_800_000_000  # 2027-01-15T08:00:00Z
Steps = Callable[[httpx.AsyncClient, MovedClock], Awaitable[None]]


def run(steps: Steps, **changed: Any) -> None:
    async def calls() -> None:
        clock = MovedClock(NOW)
        async with httpx.AsyncClient(transport=transport(clock, **changed), base_url=URL) as client:
            client.headers["Authorization"] = f"Bearer {await fetch_token(client)}"
            await steps(client, clock)

    asyncio.run(calls())


def test_a_window_lasts_a_second_of_the_clock() -> None:
    async def steps(client: httpx.AsyncClient, clock: MovedClock) -> None:
        for sent in range(5):
            answer = await client.get("/v2/whoami")
            assert answer.headers["x-ratelimit-remaining"] == str(4 - sent)
            clock.move(0.1)
        refused = await client.get("/v2/whoami")
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert refused.headers["x-ratelimit-reset"] == str(NOW + 1)
        clock.move(0.5)  # exactly a second after the first: the interval is closed
        assert (await client.get("/v2/whoami")).status_code == 429
        clock.move(1e-9)
        assert (await client.get("/v2/whoami")).status_code == 200
        assert (await client.get("/v2/whoami")).status_code == 429

    run(steps)


def test_a_retry_is_early_by_the_clock() -> None:
    async def steps(client: httpx.AsyncClient, clock: MovedClock) -> None:
        for _ in range(6):
            await client.get("/v2/whoami")
        clock.move(0.9)
        await client.get("/v2/whoami")
        clock.move(2.0)
        await client.get("/v2/whoami")
        counted = (await client.get("/__sandbox__/statistics")).json()
        assert (counted["admitted"], counted["refused"], counted["early_retries"]) == (6, 2, 1)
        assert counted["last_admitted"] - counted["first_admitted"] == 2.9

    run(steps)


def test_a_token_is_of_the_clocks_hour() -> None:
    async def steps(client: httpx.AsyncClient, clock: MovedClock) -> None:
        token = client.headers["Authorization"].removeprefix("Bearer ")
        claims = jwt.decode(token, options={"verify_signature": False})
        assert (claims["iat"], claims["exp"]) == (NOW, NOW + 3600)
        clock.move(3599)
        assert (await client.get("/v2/whoami")).status_code == 200
        clock.move(1)
        assert (await client.get("/v2/whoami")).status_code == 401

    run(steps)


def test_latency_passes_on_the_clock() -> None:
    async def steps(client: httpx.AsyncClient, clock: MovedClock) -> None:
        before = clock.monotonic()
        await client.get("/v2/whoami")
        assert clock.monotonic() - before == 60

    run(steps, delay=Delay(60_000))


def test_what_is_written_has_the_clocks_time() -> None:
    async def steps(client: httpx.AsyncClient, clock: MovedClock) -> None:
        del client.headers["Authorization"]
        client.headers["x-api-key"] = API_KEY
        customer = (await client.get("/v2/customers")).json()["data"][0]["customerId"]
        path = f"/v2/customers/{customer}/notes"
        note = (await client.post(path, json={"text": "a"})).json()
        assert note["createdAt"] == note["updatedAt"] == "2027-01-15T08:00:00Z"
        clock.move(60)
        changed = await client.patch(f"{path}/{note['noteId']}", json={"text": "b"})
        assert changed.json()["updatedAt"] == "2027-01-15T08:01:00Z"
        body = {"customerId": customer, "kinds": ["card"], "expiresInDays": 1}
        asked = (await client.post("/v2/payment-method-requests", json=body)).json()
        assert asked["createdAt"] == "2027-01-15T08:01:00Z"
        assert asked["expiresAt"] == "2027-01-16T08:01:00Z"

    run(steps, limits=Limits(0))


def test_a_date_to_come_back_at_is_the_clocks() -> None:
    async def steps(client: httpx.AsyncClient, clock: MovedClock) -> None:
        clock.move(100)
        answer = await client.get("/v2/usage")
        assert parsedate_to_datetime(answer.headers["retry-after"]).timestamp() == NOW + 107

    fault = Fault(kind_of("storm-date"), "/v2/usage", value=7.0)
    run(steps, trials=Trials((fault,)))
