"""A real S3 server in a process of its own, which can be stopped and started again.

The server is one program from a wheel. It keeps its files in a temporary folder, listens on this
machine only, and ends with the process that holds the other end of its pipe.
"""

import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from pipelines.files.bucket import Bucket

KEY = "canary-key-a1b2"
SECRET = "canary-secret-5f1c9e7d"
IDENTITIES = """{"identities": [{"name": "tests", "actions": ["Admin", "Read", "Write", "List"],
"credentials": [{"accessKey": "%s", "secretKey": "%s"}]}]}"""
NAME = "homes"
PORTS = ("master", "volume", "filer", "s3")
OPTIONS = (
    "-ip=127.0.0.1",
    "-ip.bind=127.0.0.1",
    "-dir=.",
    "-filer",
    "-s3",
    "-s3.config=s3.json",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    "-master.telemetry=false",
    "-master.electionTimeout=1s",
    "-master.volumeSizeLimitMB=64",
    "-volume.max=50",
)
FIRST_PORT = 12_000
LAST_PORT = 32_000
SERVE = """
"$@" < /dev/null > log 2>&1 &
read -r _
kill -9 $!
wait
"""
WAIT_SECONDS = 60  # on a busy machine
SETTINGS = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_REGION": "us-east-1",
}


@dataclass
class BucketServer:
    """An S3 server, which can be stopped and started again with what it holds."""

    folder: Path
    ports: dict[str, int] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.ports['s3.port']}"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        program = Path(sys.executable).with_name("weed")
        ports = [f"-{name}={port}" for name, port in self.ports.items()]
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", SERVE, "sh", program, "server", *OPTIONS, *ports],
            stdin=subprocess.PIPE,
            cwd=self.folder,
        )
        folder = f"http://127.0.0.1:{self.ports['filer.port']}/buckets/{NAME}/"
        _wait_for("POST", folder, {httpx.codes.CREATED, httpx.codes.CONFLICT})
        # Without a signature, it refuses once it is ready.
        _wait_for("GET", f"{self.endpoint}/{NAME}", {httpx.codes.FORBIDDEN})

    def stop(self) -> None:
        """End it at once, as a machine does that loses its power."""
        assert self.process
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(WAIT_SECONDS)

    def bucket(self, prefix: str = "", **options: Any) -> Bucket:
        name = prefix or secrets.token_hex(6)
        return Bucket(f"s3://{NAME}/{name}", self.endpoint, **options)


def _wait_for(method: str, url: str, statuses: set[httpx.codes]) -> None:
    ends = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < ends:
        with suppress(httpx.HTTPError):
            if httpx.request(method, url).status_code in statuses:
                return
        time.sleep(0.05)
    raise TimeoutError(url)


@contextmanager
def started_bucket() -> Iterator[BucketServer]:
    """Yield a server that runs during the block."""
    with TemporaryDirectory(prefix="s3") as folder:
        server = BucketServer(Path(folder))
        server.ports = _free_ports()
        (server.folder / "s3.json").write_text(IDENTITIES % (KEY, SECRET))
        try:
            server.start()
            yield server
        finally:
            server.stop()
            shutil.rmtree(folder, ignore_errors=True)


def _free_ports() -> dict[str, int]:
    """Return free ports for each part of the server, by its options.

    They are below those that the system gives to outgoing connections: on a busy machine, one of
    these would be taken before the server has it.
    """
    options = [f"{name}.port{kind}" for name in PORTS for kind in ("", ".grpc")]
    ports = dict[str, int]()
    with ExitStack() as opened:
        while len(ports) < len(options):
            port = FIRST_PORT + secrets.randbelow(LAST_PORT - FIRST_PORT)
            with suppress(OSError):
                opened.enter_context(socket.create_server(("127.0.0.1", port)))
                ports[options[len(ports)]] = port
    return ports
