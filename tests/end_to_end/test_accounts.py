"""Many accounts at once: none waits for another, and none that fails holds back the others."""

import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipelines.app.nightly import sync
from pipelines.app.results import LoggedProgress, ReadRequest, StreamResult
from pipelines.app.session import AppSession, open_session
from pipelines.config.home import Home
from pipelines.core.errors import ExitCode
from pipelines.metadata.runs import Outcome
from pipelines.metadata.tables import Run, VersionRow
from tests.homes import make_home, rows
from tests.sandbox.running import Running, started

GOOD = ("north", "south", "east", "west")
SIZES = ("--rate", "5", "--partners", "5", "--usage", "10000", "--billing", "10")
CLIENTS = """
[[clients]]
id = "{name}"
secret = "not secret: made for the tests"
actor = "distributor"
seed = {seed}
"""
ROWS = "SELECT _connection, count(*) FROM current.usage GROUP BY ALL ORDER BY ALL"


@contextmanager
def accounts(folder: Path, *options: str) -> Iterator[Running]:
    """Yield a sandbox in which each account has lists and a limit of its own."""
    clients = folder / "clients.toml"
    entries = (CLIENTS.format(name=name, seed=seed) for seed, name in enumerate(GOOD))
    clients.write_text("".join(entries))
    clients.chmod(0o600)
    with started("--clients", str(clients), *SIZES, *options, awkward=False) as running:
        yield running


def add_good(folder: Path, running: Running) -> Home:
    for name in GOOD:
        home = make_home(folder, running, name, client_id=name)
    return home


def read_all(session: AppSession) -> list[ReadRequest]:
    return [ReadRequest(name) for name in session.settings.connections()]


@contextmanager
def silent() -> Iterator[str]:
    """Yield the address of a service that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.long
def test_accounts_are_read_at_the_same_time(tmp_path: Path) -> None:
    with accounts(tmp_path) as running, open_session(add_good(tmp_path / "home", running)) as open_:
        result = sync(open_, read_all(open_), LoggedProgress())
        with open_.metadata.transaction() as db:
            runs = [(run.started_at, run.ended_at) for run in db.query(Run)]
        assert result.exit_code == ExitCode.DONE
        ends = [ended_at for _started_at, ended_at in runs if ended_at]
        assert len(ends) == len(GOOD)
        assert max(started_at for started_at, _ended_at in runs) < min(ends)
        assert rows(open_.home, ROWS) == [(name, 10_000) for name in sorted(GOOD)]
        assert sum(each.rate_limited for each in result.streams) == 0


@pytest.mark.long
@pytest.mark.parametrize("at_once", [1, 3])
def test_no_more_accounts_than_asked_for_are_read_at_once(tmp_path: Path, at_once: int) -> None:
    with accounts(tmp_path, "--usage", "500") as running:
        home = add_good(tmp_path / "home", running)
        home.settings_file.write_text(f"connections_at_once = {at_once}\n")
        with open_session(home) as session:
            assert sync(session, read_all(session), LoggedProgress()).exit_code == ExitCode.DONE
            with session.metadata.transaction() as db:
                runs = [(run.started_at, run.ended_at) for run in db.query(Run)]
    for moment, _ended_at in runs:
        assert sum(began <= moment < ended for began, ended in runs if ended) <= at_once


@pytest.mark.long
def test_accounts_that_fail_hold_back_no_other(tmp_path: Path) -> None:
    with accounts(tmp_path) as running, started("--rate", "50") as broken, silent() as address:
        home = add_good(tmp_path / "home", running)
        make_home(home.root, running, "refused", client_id="nobody")
        make_home(home.root, broken, "failing")
        broken.fault("error-500", every=1)
        make_home(home.root, broken, "silent", base_url=address)
        home.settings_file.write_text("publish_minutes = 0.1\nrequest_timeout_seconds = 4\n")
        with open_session(home) as session:
            requests = read_all(session)
            result = sync(session, requests, LoggedProgress())
            versions = [version.number for version in session.warehouse.versions()]
            with session.metadata.transaction() as db:
                early = db.query(VersionRow).filter_by(is_early=True).count()
                silent_end = db.query(Run).filter_by(connection="silent").one().ended_at
                first = min(row.created_at for row in db.query(VersionRow))
    assert result.exit_code == ExitCode.NEEDS_ATTENTION
    assert states(result.streams, GOOD) == {Outcome.COMPLETE: 12}
    assert states(result.streams, ("refused", "failing", "silent")) == {Outcome.FAILED: 9}
    assert rows(home, ROWS) == [(name, 10_000) for name in sorted(GOOD)]
    assert result.build
    assert len(result.build.results) == 12  # of all builds of the night
    # Analysts did not wait for the silent one.
    assert early
    assert silent_end
    assert first < silent_end
    assert len(versions) == 1  # the others of this night were replaced


def states(streams: Sequence[StreamResult], names: tuple[str, ...]) -> Counter[Outcome]:
    return Counter(each.state for each in streams if each.connection in names)
