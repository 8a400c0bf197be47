"""A kind of fault, and one fault of that kind: frozen values.

Here: when a fault befalls a request, and reading one from ``NAME[:path[:every]]``.
Not here: the effects (one family a file), counting requests (active).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

EVERYTHING = "/v2/*"
TOKENS = "/oauth/token"


class Stage(StrEnum):
    """Where an effect takes hold, from the wire inwards and out again."""

    ARRIVAL = "arrival"  # before admission: who calls, effect(token) -> refuse it from now on
    REQUEST = "request"  # inside admission, effect(scope, value)
    LIST = "list"  # effect(view, value) on a list as a page of it is about to be written
    PAGE = "page"  # effect(page, value) on a page that would have been right
    ANSWER = "answer"  # effect(exchange, value) on an answer that would have been a success
    WIRE = "wire"  # effect(line, exchange, value) instead of sending the answer


@dataclass(frozen=True)
class Kind:
    """What can go wrong. ``value`` is the default of its one parameter, whose meaning is named."""

    name: str
    meaning: str
    stage: Stage
    effect: Callable[..., Any]
    value: float | str | None = None
    path: str = EVERYTHING


@dataclass(frozen=True)
class Fault:
    """A kind with its scope.

    Of the requests to ``path`` (a trailing ``*`` stands for anything) the first ``after`` are
    spared, then every ``every``-th is befallen, ``times`` at most. Counted are requests that would
    have succeeded; before that is known, those with a valid token (arrival) or admitted (request).
    """

    kind: Kind
    path: str
    every: int = 1
    after: int = 0
    times: int | None = None
    value: float | str | None = None

    def concerns(self, path: str) -> bool:
        """Tell whether a request path is in its scope."""
        if self.path.endswith("*"):
            return path.startswith(self.path[:-1])
        return path == self.path
