"""What is said of months, currencies and the whole version, of figures that are made here."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.app.notify import notify_summary
from pipelines.checks.published import read_published as read_checked
from pipelines.finance.close import close_month
from pipelines.finance.doubt import Doubt
from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.amounts import EXACT, add_up
from pipelines.finance.reports.month_verdicts import Answer, MonthVerdict, SignOff
from pipelines.finance.reports.prepared import Prepared
from pipelines.finance.reports.queries import QUERIES, Figures, in_order, read_figures, read_query
from pipelines.finance.reports.verdicts import judge
from pipelines.metadata.tables import Notification
from pipelines.warehouse.books import BooksFolder
from pipelines.warehouse.duckdb_file import Row
from tests.cli.conftest import Cli
from tests.reconcile.books import publish
from tests.reports.conftest import BILLS, EARLIER, page_text
from tests.versions.homes import Stores

OCTOBER = date(2026, 10, 1)
NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)
PROOF: Row = {"connection": "a", "stream": "usage", "is_compared": True, "complete": True}
TOTAL: Row = {
    "currency": "EUR", "used": Decimal(8), "billed": Decimal(9), "credited": Decimal(0),
    "billed_net": Decimal(9), "difference": Decimal(1), "open": Decimal(1), "unbilled": Decimal(0),
    "overbilled": Decimal(1), "other": Decimal(0),
    "open_breaks": 1,
}  # fmt: skip
# A closed month that is over, balanced and proven.
CELL: Row = {
    "currency": "EUR", "place": 1, "month": OCTOBER, "months": [OCTOBER], "state": "closed",
    "closed_at": NOON, "is_over": True, "changed_records": 0, "difference": Decimal(0),
    "is_balanced": True, "is_doubtful": False, "usage_until": None,
}  # fmt: skip


def made(problem: str = "", doubts: list[Doubt] | None = None, **tables: list[Row]) -> Figures:
    """Return figures with these tables; the others are empty, and the lists are complete."""
    given = {name: list[Row]() for name in (*QUERIES, "not_checked")}
    given |= {"proofs": [PROOF], "currencies": [TOTAL], "as_of": [{"as_of": NOON}], **tables}
    breaks = {row["break_id"]: row for row in given["breaks"]}
    return Figures(2, problem, {}, given, [], breaks, doubts=doubts or [])


def part(reason: str, amount: str, currency: str = "EUR", place: int = 1, number: int = 1) -> Row:
    return {
        "reason": reason, "place": place, "currency": currency, "number": number,
        "difference": Decimal(amount),
    }  # fmt: skip


def month_of(figures: Figures) -> MonthVerdict:
    (verdict,) = judge(figures).months
    return verdict


def every_month() -> Iterator[tuple[dict[str, bool], Figures]]:
    names = (
        "is_open", "is_explained", "is_complete", "is_checked", "is_doubtful", "is_over",
        "is_balanced", "has_amounts", "has_all_usage",
    )  # fmt: skip
    for values in product((False, True), repeat=len(names)):
        case = dict(zip(names, values, strict=True))
        cell = {**CELL, **{name: case[name] for name in ("is_doubtful", "is_over", "is_balanced")}}
        cell["difference"] = Decimal(0) if case["has_amounts"] else None
        cell["usage_until"] = None if case["has_all_usage"] else OCTOBER
        reasons = [part("open breaks", "1")] if case["is_open"] else []
        reasons += [part("credit note", "-1")] if case["is_explained"] else []
        figures = made(
            recent=[cell],
            reasons=reasons,
            proofs=[{**PROOF, "complete": case["is_complete"]}],
            not_checked=[] if case["is_checked"] else [{"rule": "different"}],
        )
        yield case, figures


def test_a_month_is_balanced_only_if_nothing_speaks_against_it() -> None:
    for case, figures in every_month():
        month = month_of(figures)
        is_known = case["is_complete"] and case["is_checked"] and not case["is_doubtful"]
        is_proven = is_known and case["has_all_usage"]
        is_right = not case["is_open"] and case["has_amounts"] and is_proven
        expected = is_right and case["is_over"] and case["is_balanced"] and not case["is_explained"]
        assert (month.answer is Answer.BALANCED) == expected, case
        assert (month.answer is Answer.OPEN_BREAKS) == case["is_open"], case
        assert (month.open_breaks > 0) == case["is_open"], case
        if month.answer is Answer.NOT_PROVEN:
            assert not is_proven, case
        if month.answer in (Answer.NO_OPEN_BREAK, Answer.NO_OPEN_BREAK_SO_FAR):
            assert is_right, case
            assert (month.answer is Answer.NO_OPEN_BREAK) == case["is_over"], case
        if month.answer is Answer.NO_AMOUNTS:
            assert not case["has_amounts"], case
        assert (month.sign_off is SignOff.UNCHANGED) == is_known, case


def test_what_is_said_of_the_sign_off() -> None:
    for changes, expected in (
        ({}, SignOff.UNCHANGED),
        ({"is_doubtful": True}, SignOff.SIGNED_OFF),
        ({"state": "outdated", "changed_records": 2}, SignOff.CHANGED),
        ({"changed_records": 2, "is_doubtful": True}, SignOff.CHANGED),
        ({"state": "reopened"}, SignOff.REOPENED),
        ({"state": None}, SignOff.NOT_SIGNED_OFF),
        ({"state": "not known"}, SignOff.NOT_KNOWN),
        ({"state": None, "is_over": False}, SignOff.NOT_SIGNED_OFF),
        ({"state": None, "is_over": False, "place": 0}, SignOff.IN_PROGRESS),
        ({"state": None, "place": 0}, SignOff.NOT_SIGNED_OFF),
    ):
        assert month_of(made(recent=[{**CELL, **changes}])).sign_off is expected, changes


def test_a_month_that_is_prepared_for_all_connections_waits_for_approval() -> None:
    for state, connections, expected in (
        (None, None, SignOff.PREPARED),
        ("reopened", None, SignOff.PREPARED),
        (None, ("a",), SignOff.NOT_SIGNED_OFF),
        ("closed", None, SignOff.UNCHANGED),
    ):
        prepared = Prepared(OCTOBER, 1, "ann", NOON, connections)
        figures = replace(made(recent=[{**CELL, "state": state}]), prepared=(prepared,))
        assert month_of(figures).sign_off is expected, (state, connections)


def test_one_currency_that_is_not_proven_or_not_balanced_decides_for_the_month() -> None:
    currencies = [TOTAL, {**TOTAL, "currency": "JPY"}, {**TOTAL, "currency": None}]
    for changes, answer in (
        ({}, Answer.BALANCED),
        ({"is_doubtful": True}, Answer.NOT_PROVEN),
        ({"is_balanced": False}, Answer.NO_OPEN_BREAK),
        ({"difference": None, "is_balanced": None}, Answer.BALANCED),
    ):
        cells = [CELL, {**CELL, "currency": "JPY", **changes}, {**CELL, "currency": None}]
        month = month_of(made(currencies=currencies, recent=cells))
        assert month.answer is answer, changes
        assert month.without_amounts == (("JPY",) if "difference" in changes else ())


def test_a_row_of_several_months_is_shown_where_it_says_something() -> None:
    others: Row = {**CELL, "place": 4, "month": None, "months": [OCTOBER, None], "state": None}
    empty: Row = {**others, "difference": None}
    yen: Row = {**TOTAL, "currency": "JPY"}
    assert judge(made(recent=[empty])).months == ()
    changed = month_of(made(recent=[{**empty, "state": "closed", "changed_records": 1}]))
    assert (changed.answer, changed.without_amounts) == (Answer.NO_AMOUNTS, ("EUR",))
    cells = [others, {**empty, "currency": "JPY"}]
    assert month_of(made(currencies=[TOTAL, yen], recent=cells)).without_amounts == ()
    unknown = part("open breaks", "1", place=4)
    assert month_of(made(recent=[empty], reasons=[unknown])).answer is Answer.OPEN_BREAKS


def test_the_parts_of_a_month_are_sums_by_reason_and_currency() -> None:
    currencies = [{**TOTAL, "currency": "JPY"}, TOTAL]
    cells = [{**CELL, "difference": Decimal(3)}, {**CELL, "currency": "JPY"}]
    reasons = [
        part("credit note", "-2"),
        part("credit note", "5", "JPY"),
        part("open breaks", "5", number=2),
        part("open breaks", "7", place=2),
    ]
    month = month_of(made(currencies=currencies, recent=cells, reasons=reasons))
    assert [*month.difference] == ["EUR"]
    assert [*month.reasons["credit note"]] == ["JPY", "EUR"]
    assert month.open["EUR"].amount == Decimal(5)
    assert month.open_breaks == month.open["EUR"].number == 2
    assert [*month.reasons] == ["credit note"]


def found(break_id: str, difference: str | None = "1", outcome: str = "open") -> Row:
    amount = None if difference is None else Decimal(difference)
    return {
        "break_id": break_id,
        "difference": amount,
        "outcome": outcome,
        "currency": "EUR",
        "own_source": None,
    }


def test_the_answer_for_the_version() -> None:
    doubt = Doubt("", "A record cannot be read.", "Ask.")
    partial = [{**PROOF, "complete": False}, {**PROOF, "stream": "other", "is_compared": False}]
    severities = [{"severity": "high", "breaks": 2, "partners": 1, "unknown_partners": 1}]
    for figures, answer in (
        (made("Nothing is mapped.", [doubt]), Answer.NOT_COMPARED),
        (made(), Answer.NO_OPEN_BREAK),
        (made(doubts=[doubt]), Answer.NOT_PROVEN),
        (made(proofs=partial), Answer.NOT_PROVEN),
        (made(proofs=partial[1:]), Answer.NO_OPEN_BREAK),
        (made(not_checked=[{"rule": "different"}]), Answer.NOT_PROVEN),
        (made(proofs=partial, open_breaks=[found("B1")]), Answer.OPEN_BREAKS),
    ):
        assert judge(figures).answer is answer
    assert judge(made("Nothing is mapped.", [doubt])).doubts == ()
    assert judge(made(proofs=partial)).not_complete == ("a/usage",)
    (reason,) = judge(made(proofs=partial)).why_not_proven()
    assert reason.startswith("a/usage is not proven complete.")
    assert judge(made("Nothing is mapped.", [doubt], proofs=partial)).why_not_proven() == []
    verdicts = judge(made(open_breaks=[found("B1"), found("B2")], severities=severities))
    assert (verdicts.open_breaks, verdicts.partners, verdicts.unknown_partners) == (2, 1, 1)
    assert verdicts.severities == {"high": 2}


def test_what_happened_to_each_break() -> None:
    now = [
        found("new"), found("same"), found("more", "3"), found("learnt", "2"),
        found("again"), found("resolved", outcome="resolved by a person"),
        found("doubted", outcome="now uncertain"), found("old", outcome="resolved by a person"),
    ]  # fmt: skip
    then = [
        found("same"), found("more"), found("learnt", None), found("gone"), found("resolved"),
        found("doubted"), found("again", outcome="now uncertain"),
        found("old", outcome="resolved by a person"),
    ]  # fmt: skip
    figures = made(breaks=now)
    before = made(breaks=then, currencies=[{**TOTAL, "difference": Decimal("0.75")}])
    verdicts = judge(Figures(**{**vars(figures), "previous": before}))
    changes = verdicts.changes
    assert changes is not None
    kinds = {move.kind: [row["break_id"] for row in move.breaks] for move in changes.moves}
    assert kinds == {
        "new": ["new"],
        "of another amount": ["more", "learnt"],
        "open again": ["again"],
        "resolved by a person": ["resolved"],
        "now uncertain": ["doubted"],
        "no longer found": ["gone"],
    }
    assert changes.new == {"new"}
    assert changes.open_before == 6
    by_kind = {move.kind: move for move in changes.moves}
    assert by_kind["of another amount"].others["EUR"][0].amount == Decimal(4)
    assert by_kind["new"].others == {}
    assert changes.difference["EUR"].amount == Decimal("0.25")
    assert [each.change for each in verdicts.currencies] == [Decimal("0.25")]
    assert judge(figures).changes is None


AMOUNTS = st.none() | st.decimals(allow_nan=False, allow_infinity=False, places=9, max_value=10**28)
ROWS = st.lists(st.tuples(st.sampled_from(["EUR", "JPY", None]), AMOUNTS, st.integers(1, 9)))


@given(rows=ROWS, order=st.permutations(["EUR", "JPY"]))
def test_sums_are_exact_and_what_is_not_known_adds_nothing(
    rows: list[tuple[str | None, Decimal | None, int]], order: list[str]
) -> None:
    given_rows = [
        {"currency": currency, "difference": amount, "number": number}
        for currency, amount, number in rows
    ]
    sums = add_up(given_rows, order, "number")
    assert {*sums} == {currency for currency, _amount, _number in rows}
    assert [currency for currency in sums if currency] == [each for each in order if each in sums]
    for currency, total in sums.items():
        amounts = [amount for code, amount, _number in rows if code == currency]
        known = [amount for amount in amounts if amount is not None]
        expected = Decimal(0)
        for amount in known:
            expected = EXACT.add(expected, amount)
        assert total.amount == (expected if known else None)
        assert total.number == sum(number for code, _amount, number in rows if code == currency)


SAYS = {
    Answer.OPEN_BREAKS: "No: {} open break",
    Answer.NOT_PROVEN: "Not proven: no open break in what is known",
    Answer.BALANCED: "Yes: balanced",
    Answer.NO_OPEN_BREAK: "No open break, but not balanced.",
    Answer.NO_OPEN_BREAK_SO_FAR: "No open break so far.",
    Answer.NO_AMOUNTS: "No amounts: ",
}


def check_the_same_is_said_everywhere(stores: Stores) -> None:
    """Compare the verdicts with the page, `report --json` and what checks read."""
    verdicts = judge(read_figures_of_books(stores))
    text = page_text(stores)
    months: list[dict[str, Any]] = []
    for month in verdicts.months:
        assert SAYS[month.answer].format(month.open_breaks) in text
        months.append({"answer": month.answer.value, "open_breaks": month.open_breaks})
    notify_summary(
        stores.changed(notify_summary=("NO_SUCH_VARIABLE",)), read_figures_of_books(stores)
    )
    with stores.metadata.transaction() as db:
        notified = db.query(Notification).order_by(Notification.sent_at.desc()).first()
        assert notified is not None
        lines = notified.text.splitlines()
    stores.clock.now += timedelta(hours=1)
    printed = " ".join(Cli(stores.home)("report").stdout.split())
    for reason in verdicts.why_not_proven():
        assert reason in lines
        assert reason in printed
    said = Cli(stores.home).json("report")["verdict"]
    assert said["not_complete"] == [*verdicts.not_complete]
    assert said["answer"] == verdicts.answer.value
    assert (said["partners"], said["unknown_partners"]) == (
        verdicts.partners,
        verdicts.unknown_partners,
    )
    assert said["open_breaks"] == sum(each["open_breaks"] for each in months)
    assert [{name: each[name] for name in months[0]} for each in said["months"]] == months
    checked = read_checked(stores.warehouse, Decimal(0))
    assert checked.alerts == verdicts.alerts
    assert sum(row.breaks for row in verdicts.alerts.open_breaks) == verdicts.open_breaks


@pytest.mark.long
def test_page_command_and_checks_say_the_same(stores: Stores) -> None:
    stores.configure()
    check_the_same_is_said_everywhere(stores)
    close_month(stores, date(2026, 9, 1), "ann", "bob")
    publish(stores, complete=False, billing=EARLIER)
    check_the_same_is_said_everywhere(stores)
    publish(stores, billing=[*BILLS, {**BILLS[0], "id": "n2"}])
    check_the_same_is_said_everywhere(stores)


def test_each_query_says_from_which_others_it_reads() -> None:
    for name in QUERIES:
        query = read_query(name)
        text = re.sub("--.*", "", query.text)
        tables = set(re.findall(r"\b(?:FROM|JOIN)\s+(\w+)\b(?!\.)", text))
        assert {*query.needs} == tables & {*QUERIES}, name
    order = in_order(["partners"])
    assert order.index("counterparts") < order.index("breaks") < order.index("open_breaks")
    assert "trend" not in order


@pytest.mark.long
def test_each_query_alone_has_the_same_rows(stores: Stores, figures: Figures) -> None:
    folder = BooksFolder(stores.warehouse)
    for name in QUERIES:
        with folder.open(folder.newest_of(2), stores.warehouse.version(2)) as db:
            alone = read_figures(db, 2, [name])
        assert alone.tables[name] == figures.tables[name], name
