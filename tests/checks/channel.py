"""A service that messages are sent to."""

from itertools import count
from typing import Any

from apprise import decorators

SECRET = "hunter2-of-the-channel"
NUMBERS = count(1)
ADD_SERVICE: Any = decorators.notify


class Channel:
    """A service of Apprise that keeps the messages that it accepts."""

    accepts = True

    def __init__(self) -> None:
        self.received: list[str] = []
        self.heads: list[tuple[str, str]] = []  # title and kind of each
        schema = f"kept{next(NUMBERS)}"
        ADD_SERVICE(on=schema)(self._accept)
        self.url = f"{schema}://user:{SECRET}@127.0.0.1/hook"

    def _accept(self, body: str, title: str, kind: str, **_options: object) -> bool:
        self.received += [body] if self.accepts else []
        self.heads.append((title, kind))
        return self.accepts
