"""Admission: the outermost layer. Decides who calls and whether the rate limit lets them in.

Here: key and limit of each request, the 429, and the three headers on every response of the
application ("Limits", rules 1 to 4). Not here: the window's arithmetic (window), who calls
(caller), permissions (routes). Pure ASGI, so that no response can leave without passing it.
"""

import math
from collections.abc import Callable
from http import HTTPStatus

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sandbox.caller import CALLER, Caller
from sandbox.clock import Clock
from sandbox.options import ADDRESS_RATE, Options
from sandbox.problem import ProblemError, Problems
from sandbox.statistics import Statistics, Tally, wait
from sandbox.window import NANOSECONDS, SlidingWindow, Verdict

TOKEN_PATH = "/oauth/token"  # noqa: S105 - a path, no secret
JWKS_PATH = "/.well-known/jwks.json"
CONTROL = "/__sandbox__/"  # no part of the interface: neither limited nor counted
TALLY = "sandbox.tally"  # key in the ASGI scope: what is counted of the caller
LONGEST_HEADERS = 16 * 1024  # bytes
TOO_LONG = ProblemError(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    f"The headers have more than {LONGEST_HEADERS} bytes.",
)
EXEMPT_READS = {"/healthz", "/readiness"}  # "Limits", rule 2: GET only
EXEMPT_TREE = "/docs/"  # "Limits", rule 2: every path under it


class Admission:
    """An ASGI layer around the application."""

    def __init__(
        self,
        app: ASGIApp,
        options: Options,
        identify: Callable[[Scope], Caller | None],
        statistics: Statistics,
        clock: Clock,
    ) -> None:
        self._app = app
        self._limits = options.limits
        self._control = options.trials.control
        self._identify = identify
        self._statistics = statistics
        self._clock = clock
        self._window = SlidingWindow(options.limits.window)
        self._problems = Problems(options.base_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: with a refusal, or as the application does."""
        if scope["type"] != "http" or self._controls(scope["path"]):
            await self._app(scope, receive, send)
            return
        now = self._now()
        scope[CALLER] = self._identify(scope)
        verdict = self._verdict(scope, now)
        answer = self._answer(scope, send, verdict)
        if verdict and not verdict.admitted:
            refusal = self._problems.response(scope, _too_many(verdict))
            await refusal(scope, receive, answer)
        elif sum(len(name) + len(value) for name, value in scope["headers"]) > LONGEST_HEADERS:
            await self._problems.response(scope, TOO_LONG)(scope, receive, answer)
        else:
            await self._app(scope, receive, answer)

    def _now(self) -> int:
        # Whole nanoseconds, because a sum of floats is not exact at the edge of a window.
        return round(self._clock.monotonic() * NANOSECONDS)

    def _controls(self, path: str) -> bool:
        return self._control and path.startswith(CONTROL)

    def _verdict(self, scope: Scope, now: int) -> Verdict | None:
        """Decide on a request; None where no limit applies and no headers are shown."""
        caller: Caller | None = scope[CALLER]
        path = scope["path"]
        if path in (TOKEN_PATH, JWKS_PATH):
            # The identity provider is another service that happens to live at this address.
            caller = None
            if path == JWKS_PATH or not self._limits.token_route:
                return None
        key = caller.key if caller else scope["client"][0]
        limit = self._limits.rate if caller else ADDRESS_RATE
        if _exempt(scope):
            return self._window.look(key, limit, now) if self._limits.rate else None
        verdict = self._window.admit(key, limit, now) if self._limits.rate else None
        admitted = verdict is None or verdict.admitted
        scope[TALLY] = self._statistics.arrival(
            key, now, admitted=admitted, authenticated=caller is not None
        )
        return verdict

    def _answer(self, scope: Scope, send: Send, verdict: Verdict | None) -> Send:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._statistics.answer(scope["path"], message["status"])
                headers = MutableHeaders(scope=message)
                if verdict:
                    _show(verdict, headers, self._clock.time())
                if message["status"] == HTTPStatus.TOO_MANY_REQUESTS:
                    self._refused(scope, headers)
            await send(message)

        return answer

    def _refused(self, scope: Scope, headers: MutableHeaders) -> None:
        """Note when the caller may come back; nothing remains to it ("Limits", rule 4)."""
        if "X-RateLimit-Remaining" in headers:
            headers["X-RateLimit-Remaining"] = "0"
        tally: Tally | None = scope.get(TALLY)
        if tally:
            tally.told(self._now() + wait(headers.get("Retry-After"), self._clock.time()))


def _exempt(scope: Scope) -> bool:
    path = scope["path"]
    return path.startswith(EXEMPT_TREE) or (scope["method"] == "GET" and path in EXEMPT_READS)


def _show(verdict: Verdict, headers: MutableHeaders, time: float) -> None:
    resets_at = math.ceil(time + verdict.resets_in / NANOSECONDS)
    headers["X-RateLimit-Limit"] = str(verdict.limit)
    headers["X-RateLimit-Remaining"] = str(verdict.remaining)
    headers["X-RateLimit-Reset"] = str(resets_at)
    if not verdict.admitted:
        headers["Retry-After"] = str(verdict.retry_after)


def _too_many(verdict: Verdict) -> ProblemError:
    seconds = verdict.retry_after
    return ProblemError(
        HTTPStatus.TOO_MANY_REQUESTS,
        f"The rate limit is exceeded. Wait {seconds} s before the next request.",
        retry_after_seconds=seconds,
    )
