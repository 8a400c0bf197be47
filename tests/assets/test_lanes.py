"""A nightly run beside ad-hoc refetches of other connections that share its request budget."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from tests.assets import kept
from tests.assets.deployment import CHECKOUT, until
from tests.sandbox.running import AUDIENCE, Running, clients_file, started

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(600)]

NAMES = ("acme", "beta", "gamma")
SIZES = ("--partners=4500", "--usage=500", "--billing=4500")  # some 100 requests at 5 a second
CLIENTS = '[[clients]]\nid = "us"\nsecret = "s-us"\nactor = "distributor"\n'
TABLE = """
[{name}]
base_url = "{url}"
auth_url = "{url}"
audience = "{audience}"
client_id = "us"
secret = "OUR_SECRET"
budget_key = "ours"
"""
SPAN = "SELECT min(sent_at), max(sent_at) FROM requests WHERE run = ?"
REFUSED = "SELECT count(*) FROM requests WHERE status = 429"
MOST = 1.3  # times as long as alone: lanes are served 4 to 1


@dataclass
class Bench:
    """A home of three connections on one actor, and what runs nights of them."""

    folder: Path
    service: Running
    begun: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def home(self) -> Path:
        """PARTNER_SYNC_HOME."""
        return self.folder / "home"

    def ready(self, connection: str, lane: str) -> subprocess.Popen[str]:
        """Start a process that refetches today when it is told to."""
        clean = {name: value for name, value in os.environ.items() if "PARTNER_SYNC" not in name}
        own = {"PARTNER_SYNC_HOME": str(self.home), "OUR_SECRET": "s-us"}
        instance = self.folder / f"dagster-{len(self.begun)}"
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.assets.night", str(instance), connection, lane],
            env=clean | own,
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.begun.append(process)
        return process

    def begin(self, *processes: subprocess.Popen[str]) -> None:
        """Tell processes to begin."""
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            assert process.stdin
            process.stdin.write("begin\n")
            process.stdin.flush()

    def span(self, process: subprocess.Popen[str]) -> tuple[datetime, datetime]:
        """Wait for the end of a night; return when it sent its first and its last request."""
        told = json.loads(process.communicate()[0].splitlines()[-1])
        assert told["success"], told
        ((first, last),) = kept.query(self.home, SPAN, told["run"])
        return datetime.fromisoformat(first), datetime.fromisoformat(last)

    def asks(self, connection: str, after: int, pages: int) -> None:
        """Wait until a connection has asked for so many pages after a request."""

        def there() -> bool:
            asked = [each for each in kept.asked(self.home, after) if each[0] == connection]
            return len(asked) >= pages

        until(there, f"{pages} pages of {connection}")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    with started(*SIZES, "--clients", str(clients_file(tmp_path, CLIENTS))) as service:
        told = {"url": service.url, "audience": AUDIENCE}
        tables = [TABLE.format(name=name, **told) for name in NAMES]
        (config / "connections.toml").write_text("".join(tables))
        made = Bench(tmp_path, service)
        try:
            yield made
        finally:
            for process in made.begun:
                process.kill()
                process.communicate()


def test_a_nightly_run_meets_no_429_beside_refetches_and_takes_little_longer(bench: Bench) -> None:
    """And where one of them is killed with -9, nobody waits for it, and its next run goes on."""
    acme, beta, gamma = NAMES
    first, night = (bench.ready(acme, "nightly") for _ in range(2))
    killed, other, follows = (bench.ready(name, "adhoc") for name in (beta, gamma, beta))
    bench.begin(first)
    begun, ended = bench.span(first)
    alone = ended - begun
    before = kept.requests(bench.home)
    bench.begin(killed, other)
    for name in (beta, gamma):
        bench.asks(name, before, 5)

    bench.begin(night)
    bench.asks(acme, before, 30)
    killed.kill()
    linked = {each for each in kept.linked(bench.home) if each[0] == beta}
    assert linked

    begun, ended = bench.span(night)
    after = kept.requests(bench.home)
    bench.begin(follows)
    assert bench.span(other)[1] > ended  # it asked all the time
    assert bench.span(follows)[1] > ended
    assert kept.asked(bench.home, after) & linked == set()
    assert kept.query(bench.home, REFUSED) == [(0,)]
    assert ended - begun <= MOST * alone
