"""Homes for tests: a folder with one connection to a running sandbox."""

import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines.app.nightly import sync
from pipelines.app.results import LoggedProgress, ReadRequest, SyncResult
from pipelines.app.session import open_session
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.core.errors import ExitCode
from pipelines.core.files import write_durably
from pipelines.finance.reconciled import create_rows
from pipelines.warehouse.books import BooksFolder
from pipelines.warehouse.version_files import Warehouse
from tests.sandbox.running import SECRET, Running

LISTS = {"partners": 100, "usage": 500, "billing": 100, "plans": 100}
KEYS = {"partners": "partnerId", "usage": "usageId", "billing": "billingId"}

_SYNCED: dict[str, Home] = {}  # by the address of the sandbox


def make_home(folder: Path, sandbox: Running, name: str = "acme", **fields: Any) -> Home:
    """Make a home whose connection reads the sandbox; further fields go into the connection."""
    home = Home(folder).prepare()
    secret_file = home.settings_file.with_name(f"{name}-secret")
    write_durably(secret_file, SECRET.encode())
    connection = {**sandbox.connection, "secret_file": str(secret_file)}
    del connection["secret"]
    add_connection(home.connections_file, name, connection | fields)
    return home


def synced_home(factory: pytest.TempPathFactory, sandbox: Running) -> Home:
    """Return a home that was synced once, the same for all tests of a process; they copy it."""
    if sandbox.url not in _SYNCED:
        home = make_home(factory.mktemp("synced") / "home", sandbox)
        assert sync_once(home).exit_code == ExitCode.DONE
        _SYNCED[sandbox.url] = home
    return _SYNCED[sandbox.url]


def copied(home: Home, folder: Path) -> Home:
    """Copy a home; its secret stays in the original."""
    return Home(Path(shutil.copytree(home.root, folder, symlinks=True)))


opened = open_session


def sync_once(home: Home, *streams: str, connection: str = "acme") -> SyncResult:
    """Sync one connection, all its streams or some."""
    with open_session(home) as session:
        request = ReadRequest(connection, streams)
        return sync(session, [request], LoggedProgress())


def rows(home: Home, sql: str) -> list[tuple[Any, ...]]:
    """Return a query's rows from the published version, joined with the books as `sql` does."""
    warehouse = Warehouse(home)
    folder = BooksFolder(warehouse)
    with folder.open(folder.published(), warehouse.published()) as db:
        if "temp." in sql:
            create_rows(db)
        return db.sql(sql).fetchall()


def records(sandbox: Running, stream: str) -> list[dict[str, Any]]:
    """Read a whole list from the sandbox while nothing changes; numbers stay exact."""
    found: list[dict[str, Any]] = []
    with sandbox.client(sandbox.token()) as client:
        offset: int | None = 0
        while offset is not None:
            params = {"limit": LISTS[stream], "offset": offset}
            answer = client.get(f"/v2/{stream}", params=params).raise_for_status()
            page = answer.json(parse_float=Decimal)
            found += page["data"]
            offset = page["pagination"]["next_offset"]
    return found
