"""One answer on its way out, held back so that a fault can change it.

Here: status, headers and body as one value, and sending it. Not here: any fault.
"""

from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Scope, Send

from sandbox.clock import Clock
from sandbox.problem import ProblemError, Problems

FIRST_FAILURE = 400


class Exchange:
    """The answer to the request of ``scope``; its Content-Length is always that of the body."""

    def __init__(self, scope: Scope, problems: Problems, clock: Clock) -> None:
        self.scope = scope
        self.clock = clock
        self.status = 0
        self.headers = MutableHeaders()
        self.body = b""
        self._problems = problems

    @property
    def path(self) -> str:
        """The path that was asked for."""
        return str(self.scope["path"])

    @property
    def succeeded(self) -> bool:
        """Tell whether it would have been a success."""
        return 0 < self.status < FIRST_FAILURE

    async def collect(self, message: Message) -> None:
        """Take the place of ``send``."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = MutableHeaders(raw=list(message["headers"]))
        else:
            self.body += message.get("body", b"")

    def become(self, status: int, body: bytes, media_type: str) -> None:
        """Answer something else instead."""
        self.status, self.body = status, body
        self.headers = MutableHeaders({"content-type": media_type})

    def fail(self, status: int, detail: str, **members: Any) -> None:
        """Answer with a problem of the service instead."""
        problem = self._problems.response(self.scope, ProblemError(status, detail, **members))
        self._become(problem)

    def _become(self, response: Response) -> None:
        self.status, self.body = response.status_code, bytes(response.body)
        self.headers = MutableHeaders(raw=list(response.raw_headers))

    async def send(self, send: Send) -> None:
        """Send it on."""
        self.headers["content-length"] = str(len(self.body))
        start = {"type": "http.response.start", "status": self.status, "headers": self.headers.raw}
        await send(start)
        await send({"type": "http.response.body", "body": self.body})
