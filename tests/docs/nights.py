"""A home that was synced on four nights while its lists changed: what analysts really open."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import httpx

from pipelines.cli import sandbox
from pipelines.settings.mapping import FILE
from tests.end_to_end.stand import synced
from tests.sandbox.running import sandboxed
from tests.virtual import Haste

NIGHTS = [datetime(2026, *day, 2, tzinfo=UTC) for day in ((10, 29), (10, 30), (10, 31), (11, 1))]
SIZES = ("--rate=0", "--partners=60", "--usage=700", "--billing=130")
CHANGES = {"update": 1.0, "insert": 1.0, "delete": 1.0}
STREAMS = ("partners", "usage", "billing")


def four(home: Path) -> None:
    """Sync a home on four nights; between them rows of usage and billing come, change and go."""
    before = dict(os.environ)
    try:
        with sandboxed(*SIZES) as service:
            sandbox.point_at(service)
            os.environ["PARTNER_SYNC_RECONCILE"] = "true"
            (home / "config").mkdir(parents=True)
            mapped = files("pipelines.settings") / "sandbox.toml"
            (home / "config" / FILE).write_bytes(mapped.read_bytes())
            for night in NIGHTS:
                _sync(home, night)
                _change(service.url)
    finally:
        os.environ.clear()
        os.environ.update(before)


def _sync(home: Path, night: datetime) -> None:
    outcome = synced(home, replace(Haste().clock, now=lambda: night), *STREAMS)
    assert not [each.error for each in outcome.streams if each.error]


def _change(url: str) -> None:
    for name in STREAMS[1:]:
        changed = {"list": name, **CHANGES}
        answer = httpx.post(f"{url}/__sandbox__/changes", json=changed, trust_env=False)
        answer.raise_for_status()
