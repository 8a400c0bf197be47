"""A home that was synced on three nights while its lists changed: what analysts really open."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from pipelines.cli import sandbox
from tests.end_to_end.stand import synced
from tests.sandbox.running import sandboxed
from tests.virtual import Haste

NIGHTS = [datetime(2026, *day, 2, tzinfo=UTC) for day in ((10, 30), (10, 31), (11, 1))]
SIZES = ("--rate=0", "--partners=60", "--usage=700", "--billing=130")
CHANGES = {"update": 1.0, "insert": 1.0, "delete": 1.0}
STREAMS = ("partners", "usage", "billing")


@pytest.fixture(scope="session")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a user's home folder; `.partner-sync` in it is where three nights were published."""
    folder = tmp_path_factory.mktemp("user")
    before = dict(os.environ)
    try:
        with sandboxed(*SIZES) as service:
            sandbox.point_at(service)
            for night in NIGHTS:
                clock = replace(Haste().clock, now=lambda night=night: night)
                outcome = synced(folder / ".partner-sync", clock, *STREAMS)
                assert not [each.error for each in outcome.streams if each.error]
                for name in STREAMS[1:]:
                    changed = {"list": name, **CHANGES}
                    url = f"{service.url}/__sandbox__/changes"
                    httpx.post(url, json=changed, trust_env=False).raise_for_status()
    finally:
        os.environ.clear()
        os.environ.update(before)
    return folder
