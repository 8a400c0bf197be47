"""`make dev` before it starts anything; what it then shows is tested in a browser."""

import socket

import pytest

from assets import dev
from pipelines.errors import ConfigurationError


def test_a_port_that_is_taken_is_refused_before_anything_is_done() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        with pytest.raises(ConfigurationError, match=rf"on port {port} .*another make dev"):
            dev.take(port)
    dev.take(port)


@pytest.mark.parametrize("port", ["", "ui", "70000"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(ConfigurationError, match=r"port|DEV_PORT"):
        dev.take(port)
