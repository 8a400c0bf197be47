import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from pipelines.checks.catalogue import CHECKS, CheckResult, State, evaluate
from pipelines.checks.context import Limits, ListName, read_context
from pipelines.core.finding import Severity
from pipelines.metadata.runs import Outcome
from pipelines.metadata.scans import ScanStatus, set_status
from pipelines.publish.build import build
from pipelines.publish.rollback import rollback
from tests.publish.homes import DAY, Reading, Stores, add_run, read, usage
from tests.reconcile.books import FIRST, bill, line, partners, publish, used

Arrange = Callable[[Stores], None]
# They pass where nobody has begun what they watch.
NOTHING_BEGUN = {"erasure_unfinished", "notification_failed", "description_changed"}
LIST = ListName("acme", "usage")
ALL = usage(*range(1, 11))
NOT_FITTING = [*ALL[1:], {"id": "u1", "amount": "not known", "lines": []}]


def ask_all(stores: Stores, *lists: ListName) -> list[CheckResult]:
    hours = stores.settings.stale_after_hours
    return evaluate(
        read_context(stores.warehouse, stores.metadata, lists, stores.clock.now, Limits(hours))
    )


def ask(stores: Stores) -> dict[str, CheckResult]:
    """Evaluate the checks of one list; return them by code."""
    results = {result.check.code: result for result in ask_all(stores, LIST)}
    assert len(results) == len(CHECKS)
    return results


def coded(results: dict[str, CheckResult], state: State) -> set[str]:
    return {code for code, result in results.items() if result.state is state}


def publishing(records: Sequence[Any], *, complete: bool = True) -> Arrange:
    def publish(stores: Stores) -> None:
        read(stores, Reading(records, complete=complete))
        build(stores)

    return publish


def ending(outcome: Outcome | None) -> Arrange:
    def end_run(stores: Stores) -> None:
        stores.clock.now += timedelta(hours=1)
        add_run(stores, outcome)

    return end_run


def read_only(stores: Stores) -> None:
    read(stores, Reading(ALL))


def fail_load(stores: Stores) -> None:
    scan = read(stores, Reading(ALL))
    with stores.metadata.transaction() as session:
        set_status(session, scan, ScanStatus.FAILED, "page 3 is damaged.")


def wait(stores: Stores) -> None:
    stores.clock.now += timedelta(hours=36, minutes=2)


def unlink(stores: Stores) -> None:
    stores.settings.places.link.unlink()


def delete(stores: Stores) -> None:
    stores.warehouse.versions()[0].path.unlink()


def damage(stores: Stores) -> None:
    delete(stores)
    (stores.settings.places.versions / "v00000001.duckdb").write_bytes(b"\0" * 16384)


@pytest.mark.parametrize(
    ("arrange", "code", "says"),
    [
        (
            publishing(ALL, complete=False),
            "list_partial",
            r"PARTIAL\. 10 rows.*3 rows were not seen",
        ),
        (
            publishing(usage(1)),
            "scan_held",
            r"approval: 9 of 10 rows .*still see its rows of 2026-11",
        ),
        (fail_load, "scan_failed", r"could not be loaded: page 3 is damaged\..*still see"),
        (read_only, "scan_not_published", r"of 2026-11-03 .* is read and not published"),
        (
            publishing([*ALL, {}]),
            "records_quarantined",
            r"1 records of acme/usage are in quarantine",
        ),
        (publishing(NOT_FITTING), "values_in_extra", r"1 rows of acme/usage .* fit no column"),
        (wait, "list_stale", r"ended at 2026-11-02 02:01 UTC, 36 hours ago"),
        (ending(Outcome.FAILED), "run_failed", r"at 2026-11-02 03:00 UTC failed.*see version 1"),
        (ending(Outcome.INTERRUPTED), "run_failed", r"was interrupted.*still see version 1"),
        (unlink, "warehouse_unreadable", "symlink of the warehouse is gone"),
        (delete, "warehouse_unreadable", r"v00000001\.duckdb does not exist"),
        (damage, "warehouse_unreadable", r"v00000001\.duckdb cannot be opened"),
    ],
)
def test_each_check_finds_its_case(
    published: Stores, arrange: Arrange, code: str, says: str
) -> None:
    arrange(published)
    results = ask(published)
    assert results[code].state is State.FAILED
    (finding,) = results[code].findings
    assert re.search(says, finding.message)
    assert finding.code == code
    assert finding.remedy
    assert "{" not in finding.remedy
    assert finding.severity is not Severity.INFO
    assert finding.blocks is (code == "scan_held")
    if "duckdb" in says:  # no check passes on a version that cannot be read
        known = {
            "run_failed",
            "scan_held",
            "scan_failed",
        } | NOTHING_BEGUN  # by the metadata database
        assert coded(results, State.PASSED) - {"version_rolled_back"} == known


def test_what_is_published_and_new_passes_every_check(published: Stores) -> None:
    assert coded(ask(published), State.PASSED) == {check.code for check in CHECKS}


def test_nothing_passes_without_data(stores: Stores) -> None:
    results = ask(stores)
    assert coded(results, State.PASSED) == NOTHING_BEGUN
    assert coded(results, State.FAILED) == {"list_not_loaded"}


def test_a_partial_scan_behind_a_complete_one_is_stale_in_time(published: Stores) -> None:
    for _day in range(2):
        publishing(ALL, complete=False)(published)
    assert coded(ask(published), State.FAILED) == {"list_partial", "list_stale"}


def test_the_run_before_one_that_is_under_way_is_judged(published: Stores) -> None:
    ending(Outcome.FAILED)(published)
    ending(None)(published)  # of this process, which lives
    assert "run_failed" in coded(ask(published), State.FAILED)


def test_new_columns_are_said_once_and_other_values_until_they_are_gone(published: Stores) -> None:
    wider = [{**record, "note": "new"} for record in ALL]
    publishing(wider)(published)
    result = ask(published)["load_reported"]
    assert result.state is State.PASSED
    assert [each.subject for each in result.findings] == ["usage.note"]
    for records, failed in (
        (wider, set()),
        *((NOT_FITTING, {"values_in_extra"}),) * 2,
        (ALL, set()),
    ):
        publishing(records)(published)
        results = ask(published)
        assert results["load_reported"].findings == ()
        assert coded(results, State.FAILED) == failed


def test_a_rollback_is_shown_and_its_scans_wait(published: Stores) -> None:
    publishing(usage(*range(1, 12)))(published)
    rollback(published, 1, "ann", "wrong")
    results = ask(published)
    assert results["version_rolled_back"].state is State.PASSED
    assert "Newer versions exist: 2" in results["version_rolled_back"].findings[0].message
    assert "rolled back to version 1: wrong" in results["scan_held"].findings[0].message


def test_each_list_and_connection_is_asked_for_itself(published: Stores) -> None:
    published.clock.now += DAY
    lists = (LIST, ListName("acme", "billing"), ListName("zen", "usage"))
    results = ask_all(published, *lists)
    states = {each.about: each.state for each in results if each.check.code == "list_stale"}
    assert states == dict(zip(lists, (State.PASSED, State.UNKNOWN, State.UNKNOWN), strict=True))
    runs = [each.about.connection for each in results if each.check.code == "run_failed"]
    assert runs == ["acme", "zen"]


def test_a_sync_that_a_person_stopped_is_a_note(published: Stores) -> None:
    published.clock.now += timedelta(hours=1)
    add_run(published, Outcome.INTERRUPTED, message="usage: Interrupted before its end.")
    result = ask(published)["run_failed"]
    assert result.state is State.PASSED
    assert [each.severity for each in result.findings] == [Severity.INFO]


def test_a_large_break_is_a_finding(stores: Stores) -> None:
    billed = [bill("b", line("u", "7.00")), bill("c", line("v", "900.00"), currency="USD")]
    usage = [used("u"), used("v", "1.00", currency="USD")]
    publish(stores, partners=partners([FIRST]), usage=usage, billing=billed)
    for amount, found in (("899.01", []), ("899.00", ["1 open breaks"]), ("2.00", ["EUR", "USD"])):
        limits = Limits(break_amount=Decimal(amount))
        context = read_context(stores.warehouse, stores.metadata, [], stores.clock.now, limits)
        (result,) = [each for each in evaluate(context) if each.check.code == "large_breaks"]
        assert len(result.findings) == len(found)
        assert all(text in str(result.findings) for text in found)


def test_without_a_mapping_it_is_said_and_a_wrong_one_needs_attention(stores: Stores) -> None:
    publish(stores, mapping="", usage=[used("u")])
    (finding,) = ask(stores)["not_reconciled"].findings
    assert finding.severity is Severity.INFO
    assert "partner-sync mapping propose" in finding.message
    publish(stores, mapping="[usage]\nid = 'nothing'", usage=[used("u")])
    result = ask(stores)["not_reconciled"]
    assert result.state is State.FAILED
    assert "no record of usage has a field nothing" in str(result.findings)
