"""PostgreSQL is stopped while a sync reads, as if its machine was restarted."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.core.errors import ExitCode
from pipelines.metadata.runs import Outcome
from tests.end_to_end.test_sync import page_requests
from tests.homes import make_home, rows, sync_once
from tests.sandbox.running import SMALL, Running, started

if TYPE_CHECKING:
    from tests.postgresql import Server

pytestmark = pytest.mark.long
AWAY = 4.0  # seconds


@pytest.fixture
def server() -> "Iterator[Server]":
    # Elsewhere it is a plugin, which pytest has to import first.
    from tests.postgresql import running_server  # noqa: PLC0415

    with running_server() as server:
        yield server


@pytest.fixture
def slow() -> Iterator[Running]:
    """Give a sandbox whose lists take some seconds."""
    with started("--rate", "10", *SMALL) as running:
        yield running


def test_a_sync_waits_for_a_server_that_is_restarted(
    tmp_path: Path,
    server: "Server",
    slow: Running,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It may name another server, which is not restarted: see conftest.py.
    monkeypatch.setenv("PARTNER_SYNC_METADATA_URL", server.url)
    home = make_home(tmp_path / "home", slow)
    home.settings_file.write_text("[streams.usage]\nlimit = 40\n")

    def restart() -> None:
        while page_requests(slow) < 10:
            time.sleep(0.02)
        server.stop()
        time.sleep(AWAY)
        server.start()

    thread = threading.Thread(target=restart)
    thread.start()
    result = sync_once(home)
    thread.join()
    failed = [each for each in result.streams if each.state is Outcome.FAILED]
    if failed:  # of these, a transaction was under way when the server was stopped
        assert all(each.may_pass for each in failed), [each.message for each in failed]
        result = sync_once(home)
    assert result.exit_code == ExitCode.DONE
    assert any("Trying again for 30 seconds" in message for message in caplog.messages)
    assert rows(home, "SELECT count(*), count(_valid_to) FROM history.usage") == [(1500, 0)]
    assert slow.statistics()["requests"]["/v2/usage"].keys() == {"200"}
