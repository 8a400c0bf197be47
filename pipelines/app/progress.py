"""What long work reports while it runs."""


class Progress:
    """Ignores what it gets. The command line shows it, Dagster logs it."""

    def advance(self, stream: str, rows: int, requests: int, expected_rows: int | None) -> None:
        """Report how far the read of one list is. `stream` is `connection/stream`."""

    def note(self, message: str) -> None:
        """Report one sentence: a wait, a resumed scan, a build step."""
