"""Alerts of real syncs: what a sandbox does to a night, who is told, and what of it is over."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines import run
from pipelines.run import Choice, Watch
from pipelines.settings import load
from tests.alerts.receiving import Hook, hook
from tests.cli.program import ran
from tests.end_to_end import stand as stands
from tests.end_to_end.stand import Stand
from tests.virtual import Haste


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with stands.standing(tmp_path_factory.mktemp("stand")) as standing:
        yield standing


@pytest.fixture
def receiver(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    """Point the good home's alerts at a receiver."""
    with hook() as made:
        monkeypatch.setenv("OPS_HOOK", made.url)
        monkeypatch.setenv("PARTNER_SYNC_WEBHOOK", '{"url": "OPS_HOOK"}')
        monkeypatch.setenv("PARTNER_SYNC_HOME", str(stand.home))
        stand.control("POST", "/reset")
        yield made
        stand.control("POST", "/reset")


def night(*streams: str) -> list[str]:
    """Sync as the verb does; return what was said."""
    said: list[str] = []
    with (
        run.open(load(), Watch(waiting=said.append), Haste().clock) as session,
        run.alerted(session),
    ):
        run.sync(session, run.orders(session, Choice(streams=streams or tuple(stands.KEYS))))
    return said


def test_a_bad_night_is_one_message_and_the_next_good_one_ends_it(
    stand: Stand, receiver: Hook
) -> None:
    stand.control("POST", "/faults", {"name": "scope-revoked", "path": "/v2/billing"})
    stand.control("POST", "/faults", {"name": "nan", "path": "/v2/partners"})
    stand.control("POST", "/faults", {"name": "storm-silent", "path": "/v2/partners", "times": 3})
    night()
    night()
    assert receiver.titles() == [{"failed_run", "quarantine", "foreign_use"}]
    (words,) = [each["happened"] for each in receiver.bodies[0]["alerts"] if "403" in str(each)]
    assert "billing: 403 on /v2/billing" in words

    stand.control("POST", "/reset")
    night()
    assert receiver.titles("over")[1:] == [{"failed_run", "quarantine"}]

    tomorrow = replace(Haste().clock, now=lambda: datetime.now(UTC) + timedelta(hours=37))
    with run.open(load(), clock=tomorrow) as session:
        run.alert(session)
    assert receiver.titles()[2] == {"stale_data"}
    assert receiver.titles("over")[2] == {"foreign_use"}
    secret = stand.service.environment["PARTNER_SYNC_CLIENT_SECRET"]
    assert secret not in json.dumps(receiver.bodies)


def test_status_and_check_of_the_program(stand: Stand, receiver: Hook) -> None:
    stand.control("POST", "/faults", {"name": "scope-revoked", "path": "/v2/billing"})
    environment = {name: value for name, value in os.environ.items() if "PARTNER_SYNC" in name}
    environment["OPS_HOOK"] = receiver.url
    synced = ran(environment, "sync", "--stream=billing")
    shown, tried = ran(environment, "status"), ran(environment, "check", "--alerts")
    receiver.status = 500
    refused = ran(environment, "check", "--alerts")

    assert "Failed run (default): The last run of default" in " ".join(synced.stderr.split())
    told = " ".join(shown.stdout.split())
    assert "alert told since" in told
    assert "Mend the cause, then `partner-sync sync --connection default`" in told
    assert (tried.returncode, refused.returncode) == (0, 1)
    assert "it answered 500" in refused.stdout
    assert [body.get("trial") for body in receiver.bodies][-1] is True
    assert receiver.url not in shown.stdout + synced.stderr + refused.stdout


def everything(home: Path) -> bytes:
    files: list[Any] = [each for each in home.rglob("*") if each.is_file()]
    return b"".join(each.read_bytes() for each in files)


def test_the_address_of_a_webhook_is_nowhere_in_the_home(stand: Stand, receiver: Hook) -> None:
    stand.control("POST", "/faults", {"name": "scope-revoked", "path": "/v2/billing"})
    night()
    receiver.status = 500
    stand.control("POST", "/reset")
    night()
    assert b"canary-url" not in everything(stand.home)
