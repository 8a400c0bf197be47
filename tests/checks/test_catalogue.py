import re
from collections.abc import Callable
from datetime import timedelta

import pytest

from pipelines.checks.catalogue import CHECKS, CheckResult, Scope, State, evaluate
from pipelines.checks.context import CheckContext, ListName, read_context
from pipelines.core.finding import Severity
from pipelines.metadata.runs import Outcome
from pipelines.metadata.scans import ScanStatus, set_status
from pipelines.publish.build import build
from pipelines.publish.rollback import rollback
from tests.publish.homes import DAY, Reading, Stores, add_run, read, usage

LIST = ListName("acme", "usage")
ALL = usage(*range(1, 11))
STALE = timedelta(hours=36)


def context_of(stores: Stores, lists: tuple[ListName, ...]) -> CheckContext:
    hours = stores.settings.stale_after_hours
    return read_context(stores.warehouse, stores.metadata, lists, stores.clock.now, hours)


def ask(stores: Stores, *lists: ListName) -> dict[str, CheckResult]:
    """Evaluate the checks of one list; return them by code."""
    results = evaluate(context_of(stores, lists or (LIST,)))
    assert len(results) == len(CHECKS)
    return {result.code: result for result in results}


def failed(stores: Stores) -> set[str]:
    return {code for code, result in ask(stores).items() if result.state is State.FAILED}


def partial(stores: Stores) -> None:
    read(stores, Reading(ALL, complete=False))
    build(stores)


def held(stores: Stores) -> None:
    read(stores, Reading(usage(1)))
    build(stores)


def not_loadable(stores: Stores) -> None:
    scan = read(stores, Reading(ALL))
    with stores.metadata.transaction() as session:
        set_status(session, scan, ScanStatus.FAILED, "page 3 is damaged.")


def not_built(stores: Stores) -> None:
    read(stores, Reading(ALL))


def quarantined(stores: Stores) -> None:
    read(stores, Reading([*ALL, {"id": "x", "amount": {"deep": 1}}, {"amount": "1"}]))
    build(stores)


def not_fitting(stores: Stores) -> None:
    read(stores, Reading([*ALL[1:], {"id": "u1", "amount": "not known", "lines": []}]))
    build(stores)


def stale(stores: Stores) -> None:
    stores.clock.now += STALE + timedelta(minutes=2)


def run_failed(stores: Stores) -> None:
    stores.clock.now += timedelta(hours=1)
    add_run(stores, Outcome.FAILED)


def run_interrupted(stores: Stores) -> None:
    stores.clock.now += timedelta(hours=1)
    add_run(stores, Outcome.INTERRUPTED)


def link_lost(stores: Stores) -> None:
    stores.settings.places.link.unlink()


def file_lost(stores: Stores) -> None:
    (version,) = stores.warehouse.versions()
    version.path.unlink()


def file_damaged(stores: Stores) -> None:
    (version,) = stores.warehouse.versions()
    version.path.chmod(0o644)
    version.path.write_bytes(b"\0" * 16384)


@pytest.mark.parametrize(
    ("arrange", "code", "says"),
    [
        (partial, "list_partial", r"acme/usage: PARTIAL\. 10 rows.*3 rows were not seen"),
        (held, "scan_held", r"waits for approval: 9 of 10 rows .*still see its rows of 2026-11-02"),
        (not_loadable, "scan_failed", r"could not be loaded: page 3 is damaged\..*still see"),
        (not_built, "scan_not_published", r"of 2026-11-03 .* is read and not published"),
        (quarantined, "records_quarantined", r"records of acme/usage are in quarantine\.records"),
        (not_fitting, "values_in_extra", r"1 rows of acme/usage have values that fit no column"),
        (stale, "list_stale", r"ended at 2026-11-02 02:01 UTC, 36 hours ago"),
        (run_failed, "run_failed", r"began at 2026-11-02 03:00 UTC failed.*still see version 1"),
        (run_interrupted, "run_failed", r"was interrupted.*still see version 1"),
        (link_lost, "warehouse_unreadable", "symlink of the warehouse is gone"),
        (file_lost, "warehouse_unreadable", r"v00000001\.duckdb does not exist"),
        (file_damaged, "warehouse_unreadable", r"v00000001\.duckdb cannot be opened"),
    ],
)
def test_each_check_finds_its_case(
    published: Stores, arrange: Callable[[Stores], None], code: str, says: str
) -> None:
    arrange(published)
    result = ask(published)[code]
    assert result.state is State.FAILED
    (finding,) = result.findings
    assert re.search(says, finding.message)
    assert finding.code == code
    assert finding.remedy
    assert "{" not in finding.remedy
    assert finding.severity is not Severity.INFO
    assert finding.blocks is (code == "scan_held")


def test_what_is_published_and_new_passes_every_check(published: Stores) -> None:
    assert {code: result.state for code, result in ask(published).items()} == dict.fromkeys(
        (check.code for check in CHECKS), State.PASSED
    )


def test_nothing_passes_without_data(stores: Stores) -> None:
    states = {code: result.state for code, result in ask(stores).items()}
    assert states.pop("list_not_loaded") is State.FAILED
    assert set(states.values()) == {State.UNKNOWN}
    assert all(each.reason for each in ask(stores).values() if each.state is State.UNKNOWN)


@pytest.mark.parametrize("arrange", [file_lost, file_damaged])
def test_no_check_of_a_list_passes_on_a_version_that_cannot_be_read(
    published: Stores, arrange: Callable[[Stores], None]
) -> None:
    arrange(published)
    results = ask(published)
    scans_only = {"scan_held", "scan_failed"}  # the metadata database knows them
    of_lists = {check.code for check in CHECKS if check.scope is Scope.LIST} - scans_only
    assert {results[code].state for code in of_lists} == {State.UNKNOWN}


def test_a_partial_scan_behind_a_complete_one_is_stale_in_time(published: Stores) -> None:
    for _day in range(2):
        read(published, Reading(ALL, complete=False))
        build(published)
    assert failed(published) == {"list_partial", "list_stale"}


def test_the_run_before_one_that_is_under_way_is_judged(published: Stores) -> None:
    run_failed(published)
    published.clock.now += timedelta(hours=1)
    add_run(published, outcome=None)  # of this process, which lives
    assert "run_failed" in failed(published)


def test_new_columns_are_said_once_and_do_not_fail(published: Stores) -> None:
    wider = [{**record, "note": "new"} for record in ALL]
    read(published, Reading(wider))
    build(published)
    result = ask(published)["load_reported"]
    assert result.state is State.PASSED
    assert [(each.code, each.subject) for each in result.findings] == [
        ("column_changed", "usage.note")
    ]
    read(published, Reading(wider))
    build(published)
    assert ask(published)["load_reported"].findings == ()


def test_values_that_fit_no_column_are_said_until_they_are_gone(published: Stores) -> None:
    not_fitting(published)
    read(published, Reading([*ALL[1:], {"id": "u1", "amount": "not known", "lines": []}]))
    build(published)
    assert failed(published) == {"values_in_extra"}
    read(published, Reading(ALL))
    build(published)
    assert failed(published) == set()


def test_a_rollback_is_shown_and_its_scans_wait(published: Stores) -> None:
    read(published, Reading(usage(*range(1, 12))))
    build(published)
    rollback(published, 1, "ann", "wrong")
    results = ask(published)
    assert results["version_rolled_back"].state is State.PASSED
    assert "Newer versions exist: 2" in results["version_rolled_back"].findings[0].message
    assert "rolled back to version 1: wrong" in results["scan_held"].findings[0].message


def test_each_list_and_connection_is_asked_for_itself(published: Stores) -> None:
    lists = (LIST, ListName("acme", "billing"), ListName("zen", "usage"))
    published.clock.now += DAY
    results = evaluate(context_of(published, lists))
    loaded = {(each.connection, each.stream): each for each in results if each.code == "list_stale"}
    assert [each.state for each in loaded.values()] == [State.PASSED, State.UNKNOWN, State.UNKNOWN]
    assert {each.asset for each in loaded.values()} == {"warehouse/usage", "warehouse/billing"}
    runs = [each.connection for each in results if each.code == "run_failed"]
    assert runs == ["acme", "zen"]
