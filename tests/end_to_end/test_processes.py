"""One actor's budget among real processes: lanes, and what a kill -9 leaves behind."""

import os
import signal
import subprocess
import sys
from collections import Counter

import httpx
import pytest
from sqlalchemy import Engine, func, select

from pipelines.state import database
from pipelines.state.tables import REQUESTS, SLOTS, TICKETS
from tests.end_to_end.conftest import Point
from tests.sandbox.running import sandboxed

pytestmark = pytest.mark.trial

WINDOW = "0.3"  # seconds: the documented rule, three times as fast


class Member:
    """A process that was answered once and waits for the word to go on."""

    def __init__(self, lane: str, seconds: float) -> None:
        command = [sys.executable, "-m", "tests.end_to_end.member", lane, str(seconds)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=os.environ)

    def ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> int:
        with self.process:
            return self.process.wait(30)


def _last(ledger: Engine) -> int:
    with ledger.connect() as rows:
        return int(rows.execute(select(func.max(REQUESTS.c.number))).scalar_one())


def test_processes_of_both_lanes_share_one_budget_and_survive_each_other(point: Point) -> None:
    with sandboxed(f"--window={WINDOW}", "--latency-ms=20", "--jitter-ms=4") as service:
        service.environment["PARTNER_SYNC_WINDOW"] = WINDOW
        own = point(service)
        own.place.prepare()
        ledger = database.connect(own.place.state)
        # An import of ours takes a second: three processes are enough, test_lanes has more.
        members = Member("nightly", 60), Member("adhoc", 2), Member("nightly", 1)
        for each in members:
            each.ready()
        doomed, adhoc, heir = members
        together = _last(ledger)
        doomed.go()
        adhoc.go()
        assert adhoc.end() == 0
        until = _last(ledger)
        doomed.process.send_signal(signal.SIGKILL)
        assert doomed.end() == -signal.SIGKILL
        heir.go()
        assert heir.end() == 0
        served = httpx.get(f"{service.url}/__sandbox__/statistics").json()

    assert (served["refused"], served["early_retries"]) == (0, 0)
    assert served["most_admitted_in_any_window"] <= 5
    with ledger.connect() as rows:
        asked = Counter(
            rows.execute(
                select(REQUESTS.c.run).where(REQUESTS.c.number.between(together, until))
            ).scalars()
        )
        assert rows.execute(select(TICKETS)).all() == []
        assert rows.execute(select(SLOTS).where(SLOTS.c.answered_at.is_(None))).all() == []
    ledger.dispose()
    assert 0.65 < asked["nightly"] / asked.total() < 0.92
    assert list((own.place.state / "present").iterdir()) == []
