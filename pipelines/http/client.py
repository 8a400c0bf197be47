"""One request, repeated until it is answered: what the rest of partner-sync sees of the service."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipelines.core.completeness import ReadBudget as _ReadBudget  # noqa: F401 - placeholder


@dataclass(frozen=True)
class Attempt:
    """One request on the wire: what a scan file records of it, whether it was answered or not.

    `sent` and `received` are Unix seconds. `headers` are those of an allowlist. `error` says why
    there is no usable answer.
    """

    status: int | None
    sent_at: float
    received_at: float
    request_id: str | None
    headers: dict[str, str]
    body: bytes | None
    error: str | None = None


class ServiceClient:
    """Asks one service on behalf of one connection. Use as an async context manager."""

    async def page(
        self, path: str, offset: int, limit: int, on_attempt: Callable[[Attempt], None]
    ) -> Attempt:
        """Return the answer to one page request, status 200 and one JSON object within bounds.

        `on_attempt` gets every attempt that failed or was refused. Raises ServiceError.
        """
        raise NotImplementedError

    async def whoami(self) -> dict[str, Any]:
        """Return what the service says of the caller (partner surface)."""
        raise NotImplementedError

    def may_prefetch(self) -> bool:
        """Return whether latency leaves part of the rate limit unused."""
        raise NotImplementedError
