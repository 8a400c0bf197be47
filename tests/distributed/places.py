"""Databases and buckets of tests' own, on one PostgreSQL and one object store a process.

A worker of pytest-xdist is a process. Not here: the servers themselves (servers), what a test is
given (conftest).
"""

import atexit
import shutil
from collections.abc import Mapping
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from pipelines.settings import PREFIX, Home
from pipelines.settings.shared import catalogue
from tests.distributed.servers import ObjectStore, PostgreSQL

NUMBERS = count(1)
NOT_DURABLE = ("fsync", "synchronous_commit", "full_page_writes")  # nothing of a test has to last


@cache
def postgresql() -> PostgreSQL:
    """Return the PostgreSQL of this process, begun when it is first asked for."""
    folder = Path(mkdtemp(prefix="postgresql-"))
    folder.chmod(0o711)  # as root it runs under a user of its own
    server = PostgreSQL(folder / "data")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.end)
    server.begin()
    for setting in NOT_DURABLE:
        server.ask(f"ALTER SYSTEM SET {setting} = off")
    server.ask("SELECT pg_reload_conf()")
    return server


def database() -> str:
    """Make an empty database; return its URL as the setting `state` takes it."""
    return postgresql().database(f"test_{next(NUMBERS)}")


def catalog() -> str:
    """Make an empty database for a lake; return its address as the setting `warehouse` takes it."""
    return postgresql().catalog(f"test_{next(NUMBERS)}")


def lake(root: Path, store: str) -> Home:
    """Make a home whose lake is empty, its files in an object store."""
    address = catalog()
    made = Home(root, address, f"{store}/{catalogue(address)['dbname']}")
    made.prepare()
    return made


def copy(url: str) -> str:
    """Make a copy of a database that nobody is connected to; return its URL."""
    made = f"test_{next(NUMBERS)}"
    template = url.rpartition("/")[2]
    postgresql().ask(f'CREATE DATABASE "{made}" TEMPLATE "{template}"')
    return url.removesuffix(template) + made


@cache
def object_store() -> ObjectStore:
    """Return the object store of this process, begun when it is first asked for."""
    folder = Path(mkdtemp(prefix="s3-"))
    server = ObjectStore(folder / "data")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.kill)
    server.begin()
    return server


def bucket() -> str:
    """Make a bucket; return its URL."""
    return object_store().bucket(f"bucket-{next(NUMBERS)}")


def settings(*, lake: bool) -> dict[str, str]:
    """Make what several machines share; return the settings that lead there, the lake if wanted."""
    own = bucket()
    made = {"state": database(), "archive": f"{own}/archive"}
    if lake:
        made |= {"warehouse": catalog(), "lake_data": f"{own}/lake"}
    return made


def variables(made: Mapping[str, str]) -> dict[str, str]:
    """Return the same as a program's environment."""
    return {f"{PREFIX}{name.upper()}": text for name, text in made.items()}
