"""That there are no breaks is said only where it is known; all places say the same."""

from datetime import timedelta
from typing import NamedTuple

import dagster as dg
import pytest

from assets.checks import check_results
from assets.names import Names
from pipelines.app.checkup import current_version, run_checks
from pipelines.app.nightly import build_with_books
from pipelines.app.notify import notify_summary
from pipelines.checks.check import State
from pipelines.core.files import write_durably
from pipelines.finance.reconcile.statements import RULES
from pipelines.finance.report import judge, read_figures_of_books
from pipelines.finance.reports.render import render_report
from pipelines.metadata.tables import Notification
from tests.cli.conftest import Cli
from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used
from tests.versions.homes import Reading, Stores, home_of, read

BY_MONTH = MAPPING.replace('line_usage = "lines[].usage"\n', "")
NOT_RECORDED = MAPPING.replace('recorded = "recorded"\n', "")
GONE = MAPPING.replace('recorded = "recorded"', 'recorded = "gone"')
NO_ID = MAPPING.replace('[usage]\nid = "id"\n', "[usage]\n")
NO_LINES = MAPPING.replace('"lines[].usage"', '"lines[].gone"')


class Case(NamedTuple):
    """A mapping and an amount of usage; what is said first, and whether there may be breaks."""

    name: str
    said: str
    mapping: str = MAPPING
    amount: str = "5.00"
    is_known: bool = True
    unknown_rules: tuple[str, ...] = ()
    length: str = "slow"  # the mark of the test


CASES = (
    Case("all", "", length="long"),
    Case("by month", "Months are compared, as billing.line_usage is not mapped.", BY_MONTH),
    Case(
        "no time of recording",
        "late_arrivals not evaluated: usage.recorded is not mapped. No break depends on it.",
        NOT_RECORDED,
    ),
    Case(
        "a field that is gone",
        "late_arrivals not evaluated. no record of usage has a field gone",
        GONE,
        is_known=False,
    ),
    Case(
        "usage has no identifier",
        "usage.id is not mapped",
        NO_ID,
        is_known=False,
        unknown_rules=("billed_twice", "disappeared"),
    ),
    Case(
        "lines without the field",
        "no record of billing has a field lines[].gone",
        NO_LINES,
        is_known=False,
        unknown_rules=("billed_twice", "unreferenced"),
        length="long",
    ),
    Case(
        "an amount that is none",
        "1 record of usage cannot be read: field amount",
        amount="five",
        is_known=False,
        unknown_rules=RULES,
        length="long",
    ),
)


def check_commands(cli: Cli, case: Case) -> None:
    code = 0 if case.is_known else 3
    for command in ("breaks", "report"):
        first = cli(command, code=code).stdout.replace("\n", " ")
        assert case.said in first
        assert first.startswith("Not known: ") == (not case.is_known)
        found = cli.json(command, code=code)
        assert bool(found["not_known"]) == (not case.is_known)
        assert case.said in str([*found["not_known"], *found["notes"]])
    none = "There are no unresolved breaks" + ("." if case.is_known else " in what is known.")
    assert none in cli("breaks", code=code).stdout


def check_report(stores: Stores, case: Case) -> None:
    page = render_report(read_figures_of_books(stores))
    assert ("No open breaks, not proven" in page) == (not case.is_known)
    assert ("Not known:" in page) == (not case.is_known)
    assert case.said.split(" is not mapped")[0] in page


def check_dagster(stores: Stores, case: Case) -> None:
    published = current_version(stores)
    keys = {spec.key for spec in _specs()}
    results = {each.check_name: each for each in check_results(Names(), keys, [], published)}
    assert {rule for rule in RULES if not results[rule].passed} == {*case.unknown_rules}
    checks = {each.check.code: each for each in run_checks(stores, published)}
    failed = {"not_reconciled", "records_unreadable"} & {
        code for code, each in checks.items() if each.state is State.FAILED
    }
    assert bool(failed) == (not case.is_known)


def check_notification(stores: Stores, case: Case) -> None:
    told = stores.changed(notify_summary=("NO_SUCH_VARIABLE",))
    notify_summary(told, read_figures_of_books(stores))
    with stores.metadata.transaction() as db:
        text = db.query(Notification).order_by(Notification.sent_at.desc()).first()
        assert text is not None
        assert text.text.startswith("Not known: ") == (not case.is_known)
    stores.clock.now += timedelta(hours=1)


def _specs() -> list[dg.AssetCheckSpec]:
    return [dg.AssetCheckSpec(rule, asset=Names().reconciliation("breaks")) for rule in RULES]


def publish_balanced(stores: Stores) -> None:
    stores.configure()
    bills = [bill("b", line("u"))]
    publish(stores, partners=partners([FIRST]), usage=[used("u")], billing=bills)


balanced = home_of(publish_balanced)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name, marks=getattr(pytest.mark, case.length)) for case in CASES],
)
def test_that_there_are_no_breaks_is_said_where_it_is_known(balanced: Stores, case: Case) -> None:
    publish(balanced, mapping=case.mapping, usage=[used("u", case.amount)])
    check_commands(Cli(balanced.home), case)
    check_report(balanced, case)
    check_dagster(balanced, case)
    check_notification(balanced, case)


OF_PARTNERS = {"even": "5.00", "less": "4.00", "none": None, "later": None}
LISTS = {
    "partners": partners(OF_PARTNERS),
    "usage": [
        used(name, partner=name, day="2026-11-02" if name == "later" else "2026-09-10")
        for name in OF_PARTNERS
    ],
    "billing": [
        bill(name, line(name, amount), partner=name)
        for name, amount in OF_PARTNERS.items()
        if amount
    ],
}
VERDICTS = "SELECT connection, partner_id, verdict FROM finance.partner_months"
NOT_PROVEN = """
SELECT connection, sum(partners_not_proven)::INTEGER FROM finance.month_totals GROUP BY connection
"""


@pytest.mark.long
@pytest.mark.parametrize("stream", LISTS)
@pytest.mark.parametrize("is_loaded", [True, False])
def test_no_month_is_balanced_where_rows_may_be_missing(
    stores: Stores, stream: str, *, is_loaded: bool
) -> None:
    """Views say what the report says: also if one list of a connection was never read."""
    write_durably(stores.home.mapping_file, MAPPING.encode())
    for connection in ("whole", "part"):
        stores.configure(connection)
        for name, records in LISTS.items():
            is_whole = (connection, name) != ("part", stream)
            if is_whole or is_loaded:
                read(stores, Reading(records, name, connection, complete=is_whole, page_size=50))
    build_with_books(stores)
    verdicts = {row[:2]: row[2] for row in stores.rows(VERDICTS)}
    expected = {
        "even": "balanced",
        "less": "out of balance",
        "none": "out of balance",
        "later": "tentative",
    }
    assert {name: verdicts["whole", name] for name in expected} == expected
    open_breaks = {
        partner
        for (partner,) in stores.rows(
            "SELECT partner FROM reconciliation.breaks "
            "WHERE connection = 'part' AND uncertain IS NULL"
        )
    }
    for (connection, name), verdict in verdicts.items():
        if connection == "part" and name not in open_breaks:
            assert verdict in {"not proven", "tentative"}
        elif connection == "part":
            assert verdict == "out of balance"
    unproven = [name for name, verdict in verdicts.items() if verdict == "not proven"]
    assert unproven
    assert dict(stores.rows(NOT_PROVEN)) == {"whole": 0, "part": len(unproven)}
    page = judge(read_figures_of_books(stores))
    assert page.not_complete == (f"part/{stream}",)
