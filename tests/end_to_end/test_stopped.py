"""Ctrl-C while a sync waits for an answer: one sentence, its exit code, and nothing hangs."""

import os
import signal
import sys
from collections.abc import Iterator
from threading import Thread
from time import sleep

import httpx
import pytest

from pipelines.cli import app
from tests.end_to_end.conftest import Point
from tests.sandbox.running import sandboxed


def stop(url: str) -> None:
    """Press Ctrl-C when the first request of a sync is on its way: whoami."""
    while not httpx.get(f"{url}/__sandbox__/statistics").json()["requests"].get("/oauth/token"):
        sleep(0.02)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def terminal() -> Iterator[None]:
    """Hear Ctrl-C as in a terminal: a shell lets what it starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("terminal")
def test_ctrl_c_is_said_in_a_sentence(
    point: Point,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(sys, "argv", ["partner-sync", "sync"])
    with sandboxed("--latency-ms=400") as service:
        point(service)
        key = Thread(target=stop, args=(service.url,))
        key.start()
        with pytest.raises(SystemExit) as ended:
            app.main()
        key.join()
    assert ended.value.code == 130
    assert "interrupted: what analysts open is as it was" in capsys.readouterr().err
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
