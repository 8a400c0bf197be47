"""What long work reports while it runs."""

import logging
import time
from collections.abc import Callable

LOG_EVERY_SECONDS = 30
OnProgress = Callable[[str, int, int, int | None], None]
"""Receives `connection/stream`, rows and requests so far, and the rows expected (None: unknown)."""
logger = logging.getLogger(__name__)


class LoggedProgress:
    """Logs how far the read of each list is, now and then."""

    def __init__(self) -> None:
        self._logged_at: dict[str, float] = {}

    def __call__(self, stream: str, rows: int, requests: int, expected_rows: int | None) -> None:
        """Log it, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._logged_at.setdefault(stream, now) > LOG_EVERY_SECONDS:
            self._logged_at[stream] = now
            of = f" of about {expected_rows:,}" if expected_rows else ""
            logger.info("%s: %s%s rows, %s requests so far.", stream, f"{rows:,}", of, requests)
