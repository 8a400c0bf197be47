"""The main job against the sandbox over HTTP: what is published is what the service said."""

from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.config.home import Home
from pipelines.core.errors import ExitCode
from tests.homes import KEYS, make_home, records, rows, sync_once
from tests.sandbox.running import Running
from tests.truth import differences, row_differences, same, table_rows

CHANGING = ("usage", "billing")
RATES = {"insert": 0.4, "delete": 0.4, "update": 0.6}


def test_a_quiet_service_is_loaded_value_by_value(sandbox: Running, synced: Home) -> None:
    assert rows(synced, "SELECT DISTINCT complete FROM meta.completeness") == [(True,)]
    with duckdb.connect(synced.link, read_only=True) as db:
        for stream, key in KEYS.items():
            sent = records(sandbox, stream)
            assert differences(table_rows(db, f"FROM current.{stream}"), sent, key) == []
        events = [
            (record["usageId"], index, event)
            for record in records(sandbox, "usage")
            for index, event in enumerate(record.get("events") or [])
        ]
        held = {
            (row["_parent_key"], row["_index"]): row
            for row in table_rows(db, "FROM current.usage__events")
        }
        assert len(held) == len(events) > 0
        for parent, index, event in events:
            assert row_differences(held[parent, index], event) == []


def test_two_syncs_of_changing_lists_hold_the_truth(sandbox: Running, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", sandbox)
    truths: list[dict[str, dict[str, Any]]] = [snapshot(sandbox)]
    ends: list[datetime] = []
    lived: list[dict[str, list[str]]] = []
    for _ in range(2):
        with ExitStack() as stack:
            scans = {name: stack.enter_context(sandbox.scan(name)) for name in CHANGING}
            for name in CHANGING:
                sandbox.change(name, **RATES)
            result = sync_once(home)
            sandbox.told("DELETE", "/changes")
        assert [str(each.state) for each in result.streams] == ["complete"] * 3
        ends.append(max(each[0] for each in rows(home, "SELECT max(valid_time) FROM meta.loads")))
        lived.append({name: scan["lived"] for name, scan in scans.items()})
        truths.append(snapshot(sandbox))
    with duckdb.connect(home.link, read_only=True) as db:
        for number, end in enumerate(ends):
            for stream in CHANGING:
                held = {
                    row["_key"]: row
                    for row in table_rows(db, f"FROM history.{stream}_as_of('{end.isoformat()}')")
                }
                before, after = truths[number][stream], truths[number + 1][stream]
                assert set(lived[number][stream]) <= held.keys() <= before.keys() | after.keys()
                for name, row in held.items():
                    possible = [each[name] for each in (before, after) if name in each]
                    matching = [each for each in possible if not row_differences(row, each)]
                    revised = before.get(name) != after.get(name)
                    assert matching or (revised and revision_between(row, possible)), name
    final = sync_once(home)
    assert final.exit_code == ExitCode.DONE
    with duckdb.connect(home.link, read_only=True) as db:
        for stream, key in KEYS.items():
            sent = list(truths[-1][stream].values())
            assert differences(table_rows(db, f"FROM current.{stream}"), sent, key) == []
            assert_history_is_consistent(db, stream)


def snapshot(sandbox: Running) -> dict[str, dict[str, Any]]:
    return {
        stream: {record[key]: record for record in records(sandbox, stream)}
        for stream, key in KEYS.items()
    }


def revision_between(row: dict[str, Any], possible: list[dict[str, Any]]) -> bool:
    """A record that changed twice in one scan was read in between: only its revision is known."""
    revisions = [each["revision"] for each in possible]
    return bool(min(revisions) <= row["revision"] <= max(revisions))


def assert_history_is_consistent(db: duckdb.DuckDBPyConnection, stream: str) -> None:
    """No version ends before it begins, versions of a key do not overlap, at most one is open."""
    wrong = db.sql(f"""
        SELECT history._key FROM history.{stream} AS history
        WHERE history._valid_to <= history._valid_from
        UNION ALL
        SELECT history._key FROM history.{stream} AS history
        QUALIFY lead(history._valid_from) OVER (
            PARTITION BY history._connection, history._key ORDER BY history._valid_from
        ) < coalesce(history._valid_to, 'infinity'::TIMESTAMPTZ)
    """).fetchall()
    assert wrong == []


def test_the_same_list_twice_publishes_nothing_that_changed(sandbox: Running, synced: Home) -> None:
    del sandbox
    assert sync_once(synced).exit_code == ExitCode.DONE
    totals = "SELECT sum(new), sum(changed), sum(deleted) FROM meta.loads GROUP BY stream"
    first = "SELECT count(*) FROM history.usage"
    second = "SELECT count(*) FROM current.usage"
    assert rows(synced, first) == rows(synced, second) == [(1500,)]
    assert sorted(rows(synced, totals)) == [(25, 0, 0), (150, 0, 0), (1500, 0, 0)]


def test_a_failed_list_does_not_stop_the_others(sandbox: Running, synced: Home) -> None:
    sandbox.fault("redirect", "/v2/billing")
    result = sync_once(synced)
    states = {each.stream: str(each.state) for each in result.streams}
    assert states == {"partners": "complete", "usage": "complete", "billing": "failed"}
    assert result.exit_code == ExitCode.NEEDS_ATTENTION
    assert result.build
    assert len(result.build.results) == 2
    failed = next(each for each in result.streams if each.stream == "billing")
    assert "Traceback" not in failed.message
    assert "redirect" in failed.message


@pytest.mark.parametrize(
    ("held", "sent", "is_same"),
    [(True, 1, False), (None, "", False), ("1", 1, False), (1, True, False)],
)
def test_values_are_compared_exactly(held: object, sent: object, *, is_same: bool) -> None:
    assert same(held, sent) is is_same
