"""Somebody else who uses the actor of a sync: a client that sends evenly and never adapts.

In real time, against a real service; its requests are written down as it sees them.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

import httpx

from pipelines.cli.sandbox import Service

TOO_MANY = 429


@dataclass
class Other:
    """What the other client sent: the moment (Unix time) and the status of each answer."""

    answers: list[tuple[float, int]] = field(default_factory=list)

    def admitted(self, since: float, until: float) -> int:
        """Count its requests that were admitted in a time."""
        return sum(since <= at < until and status != TOO_MANY for at, status in self.answers)

    @property
    def refused(self) -> list[float]:
        """When it was answered 429."""
        return [at for at, status in self.answers if status == TOO_MANY]


@contextmanager
def sending(service: Service, interval: float) -> Iterator[Other]:
    """Let another client send a request each `interval` seconds until the block ends."""
    other, ended = Other(), Event()
    thread = Thread(target=lambda: asyncio.run(_send(service, interval, other, ended)))
    thread.start()
    try:
        while not other.answers and thread.is_alive():
            time.sleep(0.01)
        yield other
    finally:
        ended.set()
        thread.join()


async def _send(service: Service, interval: float, other: Other, ended: Event) -> None:
    names = ("client_id", "client_secret", "audience")
    body = {name: service.environment[f"PARTNER_SYNC_{name.upper()}"] for name in names}
    async with httpx.AsyncClient(base_url=service.url, trust_env=False) as http:
        granted = await http.post("/oauth/token", json=body | {"grant_type": "client_credentials"})
        signed = {"Authorization": f"Bearer {granted.json()['access_token']}"}

        async def ask() -> None:
            answer = await http.get("/v2/whoami", headers=signed)
            other.answers.append((time.time(), answer.status_code))

        async with asyncio.TaskGroup() as sent:
            while not ended.is_set():
                sent.create_task(ask())
                await asyncio.sleep(interval)
