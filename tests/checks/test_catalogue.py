import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from pipelines.app.nightly import build_with_books
from pipelines.checks.catalogue import CHECKS, evaluate
from pipelines.checks.check import CheckResult, State
from pipelines.checks.context import CheckContext
from pipelines.checks.published import ListName, read_published
from pipelines.core.errors import PartnerSyncError
from pipelines.core.finding import Finding, Severity
from pipelines.core.proof import ENDS_THERE_AGAIN
from pipelines.metadata.processes import this_process
from pipelines.metadata.runs import KILLED, Outcome
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Identity, Run
from tests.reconcile.books import FIRST, bill, line, partners, publish, used
from tests.versions.homes import DAY, OpenHome, Reading, Stores, add_run, list_state, read, usage
from tests.versions.named import roll_back
from tests.warehouse.versions import full_disk

Arrange = Callable[[Stores], object]
# They pass where nobody has begun what they watch.
NOTHING_BEGUN = {
    *("erasure_unfinished", "notification_failed", "description_changed", "list_readable"),
}
BY_METADATA = NOTHING_BEGUN | {"run_failed", "clock_set_back", "scan_held", "scan_failed"}
LIST = ListName("acme", "usage")
DOWN = "The service cannot be reached."
ALL = usage(*range(1, 11))
NOT_FITTING = [*ALL[1:], {"id": "u1", "amount": "not known", "lines": []}]


def ask_all(stores: Stores, *lists: ListName, **settings: Any) -> list[CheckResult]:
    changed = stores.settings.model_copy(update=settings)
    published = read_published(stores.warehouse, changed.break_alert_amount)
    with stores.metadata.transaction() as db:
        return evaluate(CheckContext(db, published, lists, changed, stores.clock.now))


def ask(stores: Stores, **settings: Any) -> dict[str, CheckResult]:
    """Evaluate the checks of one list; return them by code."""
    results = {result.check.code: result for result in ask_all(stores, LIST, **settings)}
    assert len(results) == len(CHECKS)
    return results


def found_by(code: str, stores: Stores, *lists: ListName, **settings: Any) -> list[Finding]:
    results = ask_all(stores, *(lists or (LIST,)), **settings)
    return [found for each in results if each.check.code == code for found in each.findings]


def coded(stores: Stores, state: State) -> set[str]:
    return {code for code, result in ask(stores).items() if result.state is state}


def publishing(records: Sequence[Any], *, complete: bool = True) -> Arrange:
    def publish(stores: Stores) -> None:
        read(stores, Reading(records, complete=complete))
        build_with_books(stores)

    return publish


KILLED_LATER = f"{KILLED} By a clock that was ahead, it began at 2026-11-03 02:00:00 UTC."


def ending(*outcomes: Outcome | None, **run: Any) -> Arrange:
    def end_runs(stores: Stores) -> None:
        for outcome in outcomes:
            stores.clock.now += timedelta(hours=1)
            add_run(stores, outcome, **run)

    return end_runs


def fail_load(stores: Stores) -> None:
    stores.set_status(read(stores, Reading(ALL)), ScanStatus.FAILED, "page 3 is damaged.")


def leave_waiting(stores: Stores) -> None:
    read(stores, Reading(ALL))
    stores.clock.now += timedelta(hours=1)


def wait(stores: Stores) -> None:
    stores.clock.now += timedelta(hours=36, minutes=2)


def set_back(stores: Stores) -> None:
    stores.clock.now -= timedelta(hours=10)


def read_in_part(stores: Stores) -> None:
    for _day in range(2):
        read(stores, Reading(ALL, complete=False))
    build_with_books(stores)


def unlink(stores: Stores) -> None:
    stores.clock.now += timedelta(hours=1)
    stores.home.link.unlink()


def delete(stores: Stores, content: bytes | None = None) -> None:
    file = stores.warehouse.versions()[0].path
    file.unlink()
    if content is not None:
        file.write_bytes(content)


CASES: list[tuple[str, Arrange, str]] = [
    ("list_partial", publishing(ALL, complete=False), r"PARTIAL\. 10 rows.*3 rows were not seen"),
    ("scan_held", publishing(usage(1)), r"approval: 9 of 10 rows .*still see its rows of 2026-11"),
    ("scan_failed", fail_load, r"could not be loaded: page 3 is damaged\..*still see"),
    ("scan_not_published", leave_waiting, "-03 .* is read but not published"),
    ("records_quarantined", publishing([*ALL, {}]), r"1 records of acme/usage are in quarantine"),
    (
        "values_in_extra",
        publishing(NOT_FITTING),
        r"1 rows of acme/usage .* do not fit their column",
    ),
    ("clock_set_back", set_back, r"is of 2026-11-02 02:0\d UTC, but this .* 2026-11-01 1\d:"),
    ("list_stale", wait, r"ended at 2026-11-02 02:01 UTC, 36 hours ago"),
    ("list_stale", read_in_part, r"ended at 2026-11-02 02:01 UTC, 4\d hours ago"),
    ("run_failed", ending(Outcome.FAILED), r"at 2026-11-02 03:00 UTC failed\. usage: Not read\."),
    ("run_failed", ending(Outcome.FAILED, None), r"03:00 UTC failed"),  # the next one still runs
    ("run_failed", ending(Outcome.INTERRUPTED), r"was killed\. usage: Not read\."),
    ("run_failed", ending(Outcome.INTERRUPTED, message=KILLED_LATER), r"was killed\. usage: Not"),
    ("warehouse_unreadable", unlink, "symlink of the"),
    ("warehouse_unreadable", delete, r"v00000001\.duckdb does not exist"),
    ("warehouse_unreadable", lambda stores: delete(stores, b"\0" * 16384), r"cannot be opened"),
]


@pytest.mark.parametrize(("code", "arrange", "says"), CASES)
def test_each_check_finds_its_case(
    published: Stores, code: str, arrange: Arrange, says: str
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
    if code == "warehouse_unreadable":  # no check passes on a version that cannot be read
        assert coded(published, State.PASSED) == BY_METADATA


def test_what_no_rebuild_cures_has_its_own_remedy(published: Stores) -> None:
    """A rebuild was advised for the version of a newer release, and for a file in the way."""

    def remedy() -> str:
        (finding,) = ask(published)["warehouse_unreadable"].findings
        return finding.remedy

    file = published.warehouse.require_published().path
    file.chmod(0o600)
    with duckdb.connect(str(file)) as db:
        db.execute("UPDATE meta.format SET number = 99")
    assert remedy() == "Install the newer partner-sync."
    link = published.home.link
    link.unlink()
    link.write_bytes(b"")
    assert remedy().startswith(f"Move {link} away")


def test_another_sync_is_no_cure_for_a_cap_on_offsets(published: Stores) -> None:
    reason = f"the service shows the same 10 rows at every offset from 40 on. {ENDS_THERE_AGAIN}"
    read(published, Reading(ALL, complete=False, reason=reason))
    build_with_books(published)
    (finding,) = ask(published)["list_partial"].findings
    assert reason in finding.message
    assert finding.remedy == "Ask the service how to read the rows behind that offset."


def test_what_is_published_and_new_passes_every_check_and_nothing_passes_without_data(
    published: Stores, open_home: OpenHome
) -> None:
    assert coded(published, State.PASSED) == {check.code for check in CHECKS}
    empty = open_home(repr)
    assert coded(empty, State.PASSED) == NOTHING_BEGUN
    assert coded(empty, State.FAILED) == {"list_not_loaded"}


@pytest.mark.long
def test_new_columns_are_said_once_and_other_values_until_they_are_gone(published: Stores) -> None:
    wider = [{**record, "note": "new"} for record in ALL]
    publishing(wider)(published)
    result = ask(published)["load_reported"]
    assert result.state is State.PASSED
    assert [each.subject for each in result.findings] == ["usage.note"]
    for records, failed in ((NOT_FITTING, {"values_in_extra"}),) * 2 + ((ALL, set()),):
        publishing(records)(published)
        assert ask(published)["load_reported"].findings == ()
        assert coded(published, State.FAILED) == failed


def test_the_rows_of_a_list_are_those_that_analysts_see(published: Stores) -> None:
    read(published, Reading(usage(1, 2), connection="zen"))
    publishing([*usage(1, 2), {}], complete=False)(published)
    loaded = read_published(published.warehouse, Decimal(0)).loaded
    rows = {str(name): (each.rows, each.in_quarantine) for name, each in loaded.items()}
    assert rows == {"acme/usage": (10, 1), "zen/usage": (2, 0)}


def test_a_rollback_is_shown_and_its_scans_wait(published: Stores) -> None:
    publishing(usage(*range(1, 12)))(published)
    roll_back(published, 1)
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


def test_published_lists_of_a_connection_that_was_removed_are_found(published: Stores) -> None:
    for reading in (Reading(ALL, stream="billing"), Reading(ALL), Reading(ALL, complete=False)):
        read(published, replace(reading, connection="zen"))
    build_with_books(published)
    (finding,) = found_by("list_not_read", published)
    assert (finding.connection, finding.severity) == ("zen", Severity.WARNING)
    assert "`zen` no longer reads billing, usage. The last scan ended at 2026-11-03 02:01" in (
        finding.message
    )
    assert "`partner-sync init --name zen`" in finding.remedy
    published.configure("zen")
    (finding,) = found_by("list_not_read", published)
    assert finding.severity is Severity.INFO


def test_an_account_of_two_connections_is_found(published: Stores) -> None:
    code, account = "account_loaded_twice", {"account.id": "7"}

    def pin(connection: str, **values: Any) -> None:
        about = {"base_url": "https://a", "identity": account, "actor": connection} | values
        identity = Identity(connection=connection, pinned_at=published.clock.now, **about)
        with published.metadata.transaction() as db:
            db.merge(identity)

    for connection in ("acme", "other", "unnamed", "zen"):
        pin(connection)
    pin("other", base_url="https://b")
    pin("unnamed", identity={})
    assert found_by(code, published) == []  # rows of acme only
    read(published, Reading(usage(11, 12), connection="unnamed"))
    for connection in ("other", "zen"):
        read(published, Reading(ALL, connection=connection))
    build_with_books(published)
    (finding,) = found_by(code, published)
    assert finding.severity is Severity.ERROR
    assert "`acme` and `zen` are one account (account.id 7), so usage" in finding.message


def test_an_api_key_of_two_connections_is_found(published: Stores) -> None:
    """The merchant surface does not say whose a key is: the connection's name is pinned."""
    for connection in ("acme", "other", "shop"):
        identity = Identity(
            connection=connection,
            base_url="https://a",
            identity={"connection": connection},
            actor=f"account:{connection == 'other'}",
            pinned_at=published.clock.now,
        )
        with published.metadata.transaction() as db:
            db.merge(identity)
        if connection != "acme":
            records = ALL if connection == "shop" else usage(11, 12)
            read(published, Reading(records, connection=connection))
    build_with_books(published)
    (finding,) = found_by("account_loaded_twice", published)
    assert "`acme` and `shop` are one account (the same API key), so usage" in finding.message


def test_records_that_two_accounts_see_are_found(published: Stores) -> None:
    """A distributor has the records of each partner that is a connection of its own."""
    accounts = {"acme": "distributor", "first": "partner 1", "second": "partner 2", "zen": "other"}
    for connection, account in accounts.items():
        identity = Identity(
            connection=connection,
            base_url="https://b" if connection == "zen" else "https://a",
            identity={"account.id": account},
            actor=account,
            pinned_at=published.clock.now,
        )
        with published.metadata.transaction() as db:
            db.merge(identity)
    read(published, Reading(usage(2, 4, 11), connection="first"))
    read(published, Reading([*usage(11), *usage(5, amount="7")], connection="second"))
    read(published, Reading(ALL, connection="zen"))
    build_with_books(published)
    (finding,) = found_by("account_loaded_twice", published)
    assert finding.subject == "first acme"
    assert "`acme` also has the records of `first`: usage. Their accounts differ" in finding.message
    assert "twice" in finding.message


def test_a_list_that_failed_is_found_until_it_is_read_again(published: Stores) -> None:
    def found(**lists: Outcome) -> list[tuple[str, str]]:
        states = {name: list_state(each, DOWN, f"Mend {name}.") for name, each in lists.items()}
        ending(max(lists.values(), key=list(Outcome).index), lists=states)(published)
        names = (LIST, ListName("acme", "billing"), ListName("acme", "plans"))
        findings = found_by("run_failed", published, *names)
        return [(each.message.partition(" failed. ")[2], each.remedy) for each in findings]

    failed, read_again = Outcome.FAILED, Outcome.PARTIAL
    both = [(f"usage, billing: {DOWN}", "Mend usage. Mend billing.")]
    assert found(usage=failed, billing=failed) == both
    assert found(plans=Outcome.COMPLETE) == both
    assert found(usage=read_again) == [(f"billing: {DOWN}", "Mend billing.")]
    assert found(usage=failed)[0][0].count(DOWN) == 2  # of two syncs
    assert found(usage=read_again, billing=read_again) == []


def test_a_scan_waits_without_a_finding_while_a_sync_runs_and_an_hour_longer(
    published: Stores,
) -> None:
    leave_waiting(published)
    states = []
    for outcome in (None, Outcome.COMPLETE):
        run_id = add_run(published, outcome, connection="zen", started_at=published.clock.now - DAY)
        states.append(ask(published)["scan_not_published"].state)
        with published.metadata.transaction() as db:
            db.delete(db.get_one(Run, run_id))
    states.append(ask(published)["scan_not_published"].state)
    assert states == [State.PASSED, State.PASSED, State.FAILED]


def test_a_scan_of_a_sync_that_was_killed_waits_while_another_sync_runs(published: Stores) -> None:
    published.clock.now += timedelta(hours=1)
    killed = add_run(published, None)
    with published.metadata.transaction() as db:
        db.get_one(Run, killed).owner = this_process() + "0"
    read(published, Reading(ALL), run_id=killed)
    add_run(published, None, connection="zen")
    assert ask(published)["scan_not_published"].state is State.PASSED


def test_a_scan_whose_build_failed_waits_without_grace(published: Stores) -> None:
    def state() -> State:
        return ask(published)["scan_not_published"].state

    read(published, Reading([*ALL, {"id": "u11"}]))
    states = [state()]
    published.clock.now += timedelta(seconds=1)
    base = published.warehouse.versions()[0].file().stat().st_size
    with full_disk(largest_file=base), pytest.raises(PartnerSyncError, match="cannot be built"):
        build_with_books(published)
    states.append(state())
    read(published, Reading(ALL, connection="zen"))  # for which a build is to be expected
    build_with_books(published)
    states.append(state())
    assert states == [State.PASSED, State.FAILED, State.PASSED]


def test_a_sync_that_a_person_stopped_is_a_note(published: Stores) -> None:
    ending(Outcome.INTERRUPTED, message="usage: Interrupted before its end.")(published)
    result = ask(published)["run_failed"]
    assert result.state is State.PASSED
    assert [each.severity for each in result.findings] == [Severity.INFO]


@pytest.mark.long
def test_reconciliation_that_lacks_a_mapping_or_finds_a_large_break(stores: Stores) -> None:
    stores.configure()
    usage = [used("u"), used("v", "1.00", currency="USD"), used("w", "3.00", currency=None)]
    publish(stores, mapping="", usage=usage)
    (finding,) = found_by("not_reconciled", stores)
    assert finding.severity is Severity.INFO
    assert "partner-sync mapping propose" in finding.message
    assert "Nothing is mapped" in ask(stores, break_alert_amount=Decimal(1))["large_breaks"].reason
    wrong = "[usage]\nid = 'nothing'"
    publish(stores, mapping=wrong)
    (finding,) = found_by("not_reconciled", stores)
    assert finding.message.startswith("No connection reads billing, so usage is not compared")
    publish(stores, mapping=wrong, billing=[bill("b", line("u"))])
    assert "not_reconciled" in coded(stores, State.FAILED)
    assert "no record of usage has a field nothing" in str(found_by("not_reconciled", stores))
    billed = [bill("b", line("u", "7.00")), bill("c", line("v", "900.00"), currency="USD")]
    publish(stores, partners=partners([FIRST]), billing=billed)
    each = ["EUR", "USD", "no currency"]
    for amount, says in (("899.01", []), ("899.00", ["1 open breaks"]), ("2.00", each)):
        breaks = found_by("large_breaks", stores, break_alert_amount=Decimal(amount))
        assert len(breaks) == len(says)
        assert all(text in str(breaks) for text in says)
