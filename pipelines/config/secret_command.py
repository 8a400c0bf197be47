"""Here: runs the command of a connection that prints its secret, such as that of a vault.

Neither what it prints nor its further words are ever shown. Not here: what is trimmed from a secret
(connections).
"""

import math
import shlex
import subprocess
import threading
import time
from functools import cache
from typing import Final

from pipelines.core.text import decode_text

TIME_LIMIT: Final = 30.0  # seconds
# The merchant surface needs the secret for each request. A new one is used after so many seconds.
KEPT_SECONDS: Final = 300.0
LONGEST: Final = 65_536  # bytes; what is longer is no secret


class SecretCommandFailed(Exception):
    """A command printed no secret. `str()` says why, without what it printed."""


class SecretCommand:
    """One command. Threads that ask at the same time wait for one run of it."""

    def __init__(self, text: str) -> None:
        self._words = shlex.split(text)
        self._guard = threading.Lock()
        self._printed = ""
        self._kept_until = -math.inf  # by the monotonic clock

    def read(self) -> str:
        """Return what the command prints, or printed in the last minutes.

        Raises SecretCommandFailed.
        """
        with self._guard:
            if time.monotonic() > self._kept_until:
                self._printed = _text_of(self._run())
                self._kept_until = time.monotonic() + KEPT_SECONDS
            return self._printed

    def _run(self) -> bytes:
        """Run the command without a shell and without input."""
        try:
            ended = subprocess.run(  # noqa: S603 - who may write connections.toml chooses it
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                # It may say what the secret is, or how to get it.
                stderr=subprocess.DEVNULL,
                timeout=TIME_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            # Without this error, which has what was printed so far.
            raise SecretCommandFailed(f"it did not end within {TIME_LIMIT:.0f} seconds") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "its words are not allowed"
            raise SecretCommandFailed(f"it cannot be started: {reason}") from None
        if ended.returncode < 0:
            raise SecretCommandFailed(f"it was ended by signal {-ended.returncode}")
        if ended.returncode > 0:
            raise SecretCommandFailed(f"it ended with exit code {ended.returncode}")
        return ended.stdout


def _text_of(printed: bytes) -> str:
    if len(printed) > LONGEST:
        raise SecretCommandFailed(f"it printed more than {LONGEST:,} bytes")
    try:
        text = decode_text(printed)
    except UnicodeDecodeError:
        raise SecretCommandFailed("it did not print UTF-8 text") from None
    if not text.strip():
        raise SecretCommandFailed("it printed nothing")
    return text


@cache
def secret_command(text: str) -> SecretCommand:
    """Return the command of a text in the syntax of a shell; connections may share one."""
    return SecretCommand(text)
