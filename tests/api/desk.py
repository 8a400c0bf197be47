"""Where tests of the client ask from: a connection, a hasty clock, and what was recorded."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from pipelines.api import client
from pipelines.api.client import Client
from pipelines.api.page import Page
from pipelines.clock import Clock
from pipelines.settings import Connection, Secret, Settings
from pipelines.state.runs import Call
from pipelines.streams.usage import USAGE
from tests.virtual import Haste

T = TypeVar("T")


@dataclass
class Desk:
    """Where a test asks from: what was recorded, and what was waited without waiting."""

    url: str
    haste: Haste = field(default_factory=Haste)
    calls: list[Call] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)

    async def record(self, call: Call) -> None:
        self.calls.append(call)

    def ask(self, question: Callable[[Client], Awaitable[T]], clock: Clock | None = None) -> T:
        connection = Connection(
            "default",
            self.url,
            self.url,
            "api",
            "me",
            Secret("PARTNER_SYNC_CLIENT_SECRET"),
            ca_file=self.settings.ca_file,
        )

        async def main() -> T:
            chosen = clock or self.haste.clock
            async with client.connect(connection, self.settings, chosen, self.record) as service:
                return await question(service)

        return asyncio.run(main())

    def usage(self) -> Page:
        return self.ask(lambda service: service.page(USAGE, 0))
