"""Tokens that are refused although they have not expired.

Here: which tokens, and asking the provider about all others. Not here: what a refusal looks like:
it is the service's own 401, in the window of the caller's address ("Limits", rule 1).
"""

from collections.abc import Callable

from sandbox.caller import Caller
from sandbox.faults.kind import Kind, Stage

MOST_REFUSED = 10_000  # then the first ones are forgotten: memory stays bounded


class Tokens:
    """Verifies tokens as ``verify`` does, except those that were refused once."""

    def __init__(self, verify: Callable[[str], Caller | None]) -> None:
        self._verify = verify
        self._refused: dict[str, None] = {}

    def verify(self, token: str) -> Caller | None:
        """Give the caller that a token stands for, or None."""
        return None if token in self._refused else self._verify(token)

    def refuse(self, token: str) -> None:
        """Refuse a token from now on."""
        self._refused[token] = None
        if len(self._refused) > MOST_REFUSED:
            del self._refused[next(iter(self._refused))]

    def clear(self) -> None:
        """Accept all again that have not expired."""
        self._refused.clear()


FAMILY = (
    Kind("token-refused", "a token refused before its exp, for good", Stage.ARRIVAL, Tokens.refuse),
)
