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

    def begin(self, connection: str, lane: str) -> subprocess.Popen[str]:
        """Begin a refetch of today in a process of its own."""
        clean = {name: value for name, value in os.environ.items() if "PARTNER_SYNC" not in name}
        own = {"PARTNER_SYNC_HOME": str(self.home), "OUR_SECRET": "s-us"}
        instance = self.folder / f"dagster-{len(self.begun)}"
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.assets.night", str(instance), connection, lane],
            env=clean | own,
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.begun.append(process)
        return process

    def seconds(self, process: subprocess.Popen[str]) -> float:
        """Wait for the end of a night; return how long it was asking."""
        told = json.loads(process.communicate()[0].splitlines()[-1])
        assert told["success"], told
        ((first, last),) = kept.query(self.home, SPAN, told["run"])
        return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


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
                process.wait()


def test_a_nightly_run_meets_no_429_beside_refetches_and_takes_little_longer(bench: Bench) -> None:
    """And where one of them is killed with -9, the others and its next run go on."""
    alone = bench.seconds(bench.begin("acme", "nightly"))
    before = kept.requests(bench.home)
    others = [bench.begin(name, "adhoc") for name in NAMES[1:]]
    until(lambda: kept.requests(bench.home) > before + 10, "refetches that ask")

    beside = bench.seconds(bench.begin("acme", "nightly"))

    assert kept.query(bench.home, REFUSED) == [(0,)]
    assert [each.poll() for each in others] == [None, None]  # they asked all the time
    assert beside <= MOST * alone

    killed, goes_on = others
    killed.kill()
    linked, before = kept.linked(bench.home), kept.requests(bench.home)
    follows = bench.begin(NAMES[1], "adhoc")
    assert bench.seconds(goes_on)
    assert bench.seconds(follows)
    assert (
        kept.asked(bench.home, before) & {each for each in linked if each[0] == NAMES[1]} == set()
    )
    assert kept.query(bench.home, REFUSED) == [(0,)]
