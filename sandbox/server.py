"""The server: one socket on the loopback address, one line when it answers, a prompt end.

Here: binding first, so that port 0 is known before the service is made; uvicorn; signals.
Not here: the service, the options.
"""

import socket
import ssl
import sys
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

HOST = "127.0.0.1"
GRACE_SECONDS = 1  # for answers that are under way when the end is asked for
IDLE_SECONDS = 60  # keep-alive: longer than any client waits for its rate limit


class PortInUseError(OSError):
    """Somebody else listens on the port."""


def bind(port: int) -> socket.socket:
    """Bind the loopback address; port 0 is a free one.

    Raises:
        PortInUseError: the port is taken.
    """
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((HOST, port))
        bound.listen()
    except OSError as error:
        bound.close()
        raise PortInUseError(f"port {port} of {HOST} is in use: {error.strerror}") from error
    return bound


def base_url(bound: socket.socket, scheme: str = "http") -> str:
    """Give the address of a bound socket."""
    host, port = bound.getsockname()
    return f"{scheme}://{host}:{port}"


class Server(uvicorn.Server):
    """Uvicorn that says when it is ready, and for which a signal is a normal end.

    Programs that start a sandbox read one line on its standard output, where nothing else is
    printed; the address is its third word, PLACE a file of mode 0600 or a variable's name:

        sandbox ready: http://127.0.0.1:PORT (client ID, audience AUDIENCE, secret in PLACE)

    With a clients file of several it says ``clients ID, ID, …`` and ``secrets in FILE``. With TLS
    the address begins with https and ``authority in FILE`` stands before the secret.
    """

    def __init__(self, application: ASGIApp, ready: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                access_log=False,
                log_level="warning",
                lifespan="off",
                ws="none",
                server_header=False,
                proxy_headers=False,  # else X-Forwarded-For would choose whose limit applies
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
                ssl_context_factory=(lambda _config, _default: tls) if tls else None,
            )
        )
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening, then print the line."""
        await super().startup(sockets)
        sys.stdout.write(f"{self._ready}\n")
        sys.stdout.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's
        """End without raising the signal again: the exit code is 0. A second signal hurries."""
        self.force_exit = self.should_exit
        self.should_exit = True
