"""Every request that was sent is in the ledger, whoever gives up waiting for its answer."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from sqlalchemy import Engine

from pipelines.run import contact
from pipelines.state import runs
from pipelines.state.runs import Call
from tests import ledgers

NOW = datetime(2026, 11, 22, 2, tzinfo=UTC)
CALL = Call("usage", "GET", "/v2/usage", "limit=500", NOW, 0.0, 0.1, 200, 4, "r", None)


def test_who_gives_up_while_others_write_leaves_its_line(tmp_path: Path) -> None:
    ledger = ledgers.opened(tmp_path)
    asyncio.run(_given_up(ledger))
    assert [call for some in runs.calls(ledger, 0, 10) for _number, _run, call in some] == [CALL]
    ledger.dispose()


async def _given_up(ledger: Engine) -> None:
    """Give up a call's recording while the only thread is busy; end before it is free."""
    loop, free = asyncio.get_running_loop(), Event()
    loop.set_default_executor(ThreadPoolExecutor(max_workers=1))
    busy = loop.run_in_executor(None, free.wait)
    recording = asyncio.create_task(contact._record(ledger, "run", CALL))
    await asyncio.sleep(0)
    recording.cancel()
    await asyncio.gather(recording, return_exceptions=True)
    free.set()
    await busy
