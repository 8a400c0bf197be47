"""The limiter on a real PostgreSQL: simulations, and real processes with the server's clock."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from subprocess import PIPE, Popen
from sys import executable

import pytest
from sqlalchemy import Connection

from pipelines.core.clock import Clock
from pipelines.metadata.engine import Metadata
from tests.rate_limit import test_limiter, test_sharing
from tests.rate_limit.conftest import name_of
from tests.rate_limit.simulated import VirtualMetadata
from tests.rate_limit.test_contention import check_contention

OWNER = """
import sys
from pathlib import Path
from pipelines.metadata.engine import Metadata
print(Metadata.open(Path(sys.argv[1]), sys.argv[2]).this_process(), flush=True)
sys.stdin.read()
"""
pytest_plugins = ["tests.postgresql"]
test_slots = test_limiter.test_a_request_holds_its_slot_for_one_window
test_cancelled_waits = test_limiter.test_a_cancelled_wait_gives_its_slot_back
test_retry_after = test_limiter.test_a_retry_after_holds_for_everybody_and_can_be_forgotten
test_killed_owners = (
    test_sharing.test_slots_are_held_while_their_owner_lives_and_its_request_for_the_deadline
)


class VirtualServer(VirtualMetadata):
    """A metadata database on a server that has the simulated clock."""

    def now(self, connection: Connection, clock: Clock) -> float:
        super().now(connection, clock)
        return clock.monotonic()


@pytest.fixture
def metadata(server_url: str, tmp_path: Path) -> Iterator[Metadata]:
    with closing(VirtualServer.open(tmp_path / "metadata.db", server_url)) as opened:
        yield opened


@pytest.fixture
def owners(server_url: str, tmp_path: Path) -> Iterator[list[Popen[bytes]]]:
    """Give processes that hold their names in sessions; the test may kill them."""
    command = [executable, "-c", OWNER, str(tmp_path / "other.db"), server_url]
    started = [Popen(command, stdin=PIPE, stdout=PIPE) for _ in range(2)]
    for each in started:
        assert each.stdout is not None
        assert each.stdout.readline().decode().strip() == name_of(each)
    yield started
    for each in started:
        with each:
            each.kill()


def test_real_processes_share_the_limit(server_url: str, tmp_path: Path) -> None:
    check_contention([tmp_path / name / "metadata.db" for name in "ab"], server_url)
    assert list(tmp_path.rglob("*.db")) == []
