"""What long work reports while it runs."""

from typing import Protocol


class Progress(Protocol):
    """Receives progress; the command line shows it, Dagster logs it."""

    def advance(self, stream: str, rows: int, requests: int, expected_rows: int | None) -> None:
        """Report how far the read of one list is. `stream` is `connection/stream`."""

    def note(self, message: str) -> None:
        """Report one sentence: a wait, a resumed scan, a build step."""


class NoProgress:
    """Progress that nobody watches."""

    def advance(self, stream: str, rows: int, requests: int, expected_rows: int | None) -> None:
        """Ignore it."""

    def note(self, message: str) -> None:
        """Ignore it."""
