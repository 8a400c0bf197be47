"""Lists whose order moves, that repeat rows or lie about their end, read over HTTP."""

from pathlib import Path
from typing import Any

import pytest

from pipelines.metadata.runs import Outcome
from tests.homes import make_home, records, rows, sync_once
from tests.sandbox.running import Running

SETTINGS = "[streams.usage]\nlimit = 300\n"
KEY = "usageId"
# Fault of the sandbox, its value, whether the list must be proven complete.
CASES: list[tuple[str, Any, bool]] = [
    ("ties", 2, True),
    ("ties", 7, True),
    ("ties", 60, True),
    ("ties", 700, False),
    ("ties", 100_000, False),
    ("last-change", 2, True),
    ("last-change-first", 2, True),
    ("repeated-rows", 1, True),
    ("repeated-rows-near", 1, True),
    ("conflicting-rows", 1, True),
    ("conflicting-rows-near", 1, True),
    ("new-keys", None, False),
    ("false-end", None, False),
    ("endless", None, False),
    ("clamp-limit", 50, True),
    ("no-next-offset", None, True),
    ("standstill", None, True),
    ("short-page", None, False),
]


@pytest.mark.long
@pytest.mark.parametrize(("fault", "value", "is_complete"), CASES)
def test_no_row_is_lost_or_doubled(
    sandbox: Running, tmp_path: Path, fault: str, value: int | None, *, is_complete: bool
) -> None:
    home = make_home(tmp_path / "home", sandbox)
    home.settings_file.write_text(SETTINGS)
    sent = {record[KEY] for record in records(sandbox, "usage")}
    sandbox.fault(fault, "/v2/usage", **({} if value is None else {"value": value}))
    (result,) = sync_once(home, "usage").streams
    held = [key for (key,) in rows(home, "SELECT usage._key FROM current.usage AS usage")]
    assert len(held) == len(set(held)) > 0
    assert result.state is Outcome.COMPLETE or not is_complete
    if result.state is Outcome.COMPLETE:
        assert set(held) == sent


@pytest.mark.long
@pytest.mark.parametrize(
    "changes",
    [
        {"insert": 1, "where": "head"},
        {"insert": 1, "where": "tail"},
        {"insert": 0.5, "delete": 0.5, "where": "ends"},
        {"insert": 0.5, "delete": 0.5, "where": "anywhere"},
    ],
    ids=["head grows", "tail grows", "ends change", "mixed"],
)
def test_rows_that_lived_throughout_are_read(
    sandbox: Running, tmp_path: Path, changes: dict[str, Any]
) -> None:
    home = make_home(tmp_path / "home", sandbox)
    home.settings_file.write_text(SETTINGS)
    with sandbox.scan("usage") as truth:
        sandbox.change("usage", **changes)
        (result,) = sync_once(home, "usage").streams
        sandbox.told("DELETE", "/changes")
    held = [key for (key,) in rows(home, "SELECT usage._key FROM current.usage AS usage")]
    assert truth["insert"]
    assert result.state is Outcome.COMPLETE
    assert len(held) == len(set(held))
    assert set(truth["lived"]) <= set(held)
