"""What becomes of a break: found, decided about, gone, back; and what is not certain."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from pipelines.app.nightly import build_with_books, rebuild_with_books
from pipelines.core.files import write_durably
from pipelines.finance.books import make_books
from pipelines.finance.break_decisions import BreakDecision, choose_breaks, record_decisions
from pipelines.finance.breaks import BreakFilter
from pipelines.finance.reconcile import engine
from pipelines.finance.reconcile.statements import Statement, read_statement
from pipelines.warehouse.books import BooksFolder
from tests.reconcile.books import (
    FIRST,
    MAPPING,
    bill,
    decide,
    home_with,
    line,
    partners,
    publish,
    used,
)
from tests.versions.homes import Reading, Stores, read
from tests.versions.named import erase

BILLS = [bill("b", line("u", "5.01"))]
NOT_EVALUATED = (
    "SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated AND rule <> 'receivables'"
)
AMOUNT = 'amount = "amount"'
TWICE = "reconciliation.breaks WHERE rule = 'billed_twice'"
ROWS = {rule: f"break_rows WHERE rule = '{rule}'" for rule in ("different", "billed_twice")}


stores = home_with([used("u")], BILLS)  # one break: a cent more on the bill


def breaks(stores: Stores, columns: str = "state, owner, resolved_by") -> list[tuple[Any, ...]]:
    return stores.rows(f"SELECT {columns} FROM reconciliation.breaks ORDER BY rule, subject")


def bill_at(stores: Stores, amount: str) -> None:
    publish(stores, billing=[bill("b", line("u", amount))])


@pytest.mark.long
def test_a_break_is_decided_about_and_gone_and_back(stores: Stores) -> None:
    """Five breaks: assigned, resolved, reopened, resolved for its difference, resolved and gone."""

    def bill_all(**amounts: str) -> None:
        lines = (line(each, amounts.get(each, "5.01")) for each in "uvwxy")
        bills = [bill(name, each) for name, each in zip("bcdef", lines, strict=True)]
        publish(stores, usage=[used(each) for each in "uvwxy"], billing=bills)

    assigned, resolved = ("assigned", "bob", None), ("resolved", "bob", "ann")
    bill_all()
    known = breaks(stores, "break_id, first_seen")
    decisions = ("assign",), *[("assign", "resolve")] * 4
    for (break_id, _), kinds in zip(known, decisions, strict=True):
        for kind in kinds:
            decide(stores, f"break_{kind}", break_id, owner="bob")
    published = stores.warehouse.published()
    assert make_books(stores).is_new  # for the decisions alone
    assert not make_books(stores).is_new
    assert stores.warehouse.published() == published
    assert breaks(stores) == [assigned, *[resolved] * 4]
    decide(stores, "break_reopen", known[2][0])
    bill_all(x="5.02", y="5.00")
    gone = ("resolved", "bob", "evidence")
    assert breaks(stores) == [assigned, resolved, assigned, assigned, gone]
    remembered = breaks(stores, "break_id, state, first_seen, gone_at, difference")
    rebuild_with_books(stores)
    assert breaks(stores, "break_id, state, first_seen, gone_at, difference") == remembered
    bill_all()  # a decision holds while the difference is the same, unless the break was gone
    assert breaks(stores) == [assigned, resolved, assigned, resolved, assigned]
    assert breaks(stores, "break_id, first_seen") == known


@pytest.mark.long
def test_a_decision_is_about_the_records_that_it_saw(stores: Stores) -> None:
    """Not about others of the same amount; and whatever the clock of this machine says."""
    publish(stores, usage=[used("u"), used("v")], billing=[bill("b", line("v"))])
    stores.clock.now -= timedelta(days=40)
    unbilled = BreakFilter(rule="not_billed")
    record_decisions(stores, choose_breaks(stores, unbilled, BreakDecision("resolve", "why")))
    stores.clock.now += timedelta(days=40)
    make_books(stores)
    states = "SELECT state, difference FROM reconciliation.breaks WHERE rule = 'not_billed'"
    assert stores.rows(states) == [("resolved", -5)]
    publish(stores, billing=[bill("b", line("u"))])
    assert stores.rows(states) == [("open", -5)]


@pytest.mark.long
def test_an_owner_stays_if_only_the_cause_of_a_break_changes(stores: Stores) -> None:
    """The cause is a part of what identifies unbilled usage."""
    void, empty = bill("b", status="void"), bill("b")
    publish(stores, usage=[used("u"), used("v")], billing=[void])
    columns = "cause, rows, state, owner"
    found = f"SELECT {columns} FROM reconciliation.breaks WHERE gone_at IS NULL"

    def assign(owner: str) -> None:
        decision = BreakDecision("assign", "why", owner)
        chosen = choose_breaks(stores, BreakFilter(rule="not_billed"), decision)
        record_decisions(stores, chosen)
        make_books(stores)

    assign("bob")
    assert stores.rows(found) == [("no bill for the month", 2, "assigned", "bob")]
    publish(stores, billing=[empty])
    assert stores.rows(found) == [("missing on the bill", 2, "assigned", "bob")]
    assign("eve")
    publish(stores, billing=[void])
    assert stores.rows(found) == [("no bill for the month", 2, "assigned", "eve")]


@pytest.mark.long
def test_records_without_an_identifier_are_not_those_of_others(stores: Stores) -> None:
    by_number = MAPPING.replace('id = "id"\npartner', 'id = "number"\npartner', 1)
    blank = [used("a"), used("b", partner="other")]  # the digest of their records is the same
    named = ["u", *map(str, range(19))]
    usage = [*blank, *(used(name, number=name) for name in named)]
    known = partners([FIRST, "other"])
    billing = [bill("b", *map(line, named))]
    publish(stores, mapping=by_number, partners=known, usage=usage, billing=billing)
    found = "FROM reconciliation.breaks WHERE rule = 'not_billed' ORDER BY partner"
    sql = f"SELECT partner, break_id, rows_digest {found}"
    (_, break_id, digest), _ = stores.rows(sql)
    decide(stores, "break_assign", break_id, owner="bob", rows_digest=digest)
    make_books(stores)
    assert stores.rows(f"SELECT partner, owner {found}") == [("first", "bob"), ("other", None)]
    gone = "SELECT subject, state FROM reconciliation.breaks WHERE rule = 'disappeared' ORDER BY 1"
    publish(stores, mapping=by_number, usage=usage[2:])
    assert stores.rows(gone) == [("usage|a", "open"), ("usage|b", "open")]
    publish(stores, mapping=by_number, usage=usage)
    assert stores.rows(gone) == [("usage|a", "resolved"), ("usage|b", "resolved")]


@pytest.mark.long
def test_a_rebuild_with_a_newer_scan_knows_since_when_there_is_a_break(stores: Stores) -> None:
    publish(stores, usage=[used("u"), used("v")])
    known = breaks(stores, "break_id, first_seen")
    read(stores, Reading([used("u"), used("v", "7.00")]))
    rebuild_with_books(stores)
    assert breaks(stores, "break_id, first_seen") == known
    assert breaks(stores, "used_amount") == [(5,), (7,)]


@pytest.mark.long
def test_what_rests_on_a_partial_list_is_uncertain_and_in_no_total(stores: Stores) -> None:
    publish(stores, usage=[used("u"), used("v")], billing=[bill("b", line("u"))])
    assert breaks(stores, "rule, state, uncertain")[1] == ("not_billed", "open", None)
    publish(stores, complete=False, billing=[bill("b", line("u", "4.00"))])
    reason = "billing is not proven complete"
    uncertain = [("different", "open", reason), ("not_billed", "open", reason)]
    assert breaks(stores, "rule, state, uncertain") == uncertain
    assert stores.rows("SELECT sum(open_breaks) FROM reconciliation.summary") == [(0,)]
    assert stores.rows("SELECT count(*) FROM reconciliation.ageing") == [(0,)]
    verdict = "SELECT DISTINCT verdict FROM reconciliation.summary"
    assert stores.rows(verdict) == [("not proven",)]


@pytest.mark.long
def test_what_is_billed_too_much_is_uncertain_while_a_credit_note_may_be_missing(
    stores: Stores,
) -> None:
    too_much = bill("b", line("u", "6.00"), line("gone"), line(None, "2.00"))
    twice = [too_much, bill("c", line("v")), bill("d", line("v"))]
    of_partner = bill("e", line("x"), partner="nobody")
    publish(stores, usage=[used("u"), used("v")])
    publish(stores, complete=False, billing=[*twice, of_partner])
    rules = ("billed_twice", "different", "not_used", "unreferenced")
    found = [(rule, "billing is not proven complete") for rule in rules]
    sql = "SELECT rule, uncertain FROM reconciliation.breaks WHERE gone_at IS NULL ORDER BY rule"
    assert stores.rows(sql) == [*found[:3], ("unknown_partner", None), found[3]]
    publish(stores, billing=[*twice, of_partner])
    assert {reason for _rule, reason in stores.rows(sql)} == {None}


@pytest.mark.long
def test_what_an_old_list_lacks_is_uncertain(stores: Stores) -> None:
    stores.clock.now += timedelta(days=40)  # the bills were read before
    publish(stores, usage=[used("u"), used("v", day="2026-11-20")])
    reason = "billing was read before the month was due"
    assert breaks(stores, "rule, uncertain") == [("different", None), ("not_billed", reason)]
    publish(stores, billing=BILLS)
    assert breaks(stores, "rule, uncertain") == [("different", None), ("not_billed", None)]


@pytest.mark.long
def test_a_list_is_not_old_as_those_of_another_connection_are_newer(stores: Stores) -> None:
    bills = [*BILLS, bill("c", line("x"), month="2026-11-01")]
    publish(stores, usage=[used("u")], billing=bills)
    stores.clock.now += timedelta(days=5)
    read(stores, Reading([used("u")], connection="another"))
    build_with_books(stores)
    found = [each for each in breaks(stores, "rule, uncertain") if each[0] == "not_used"]
    assert found == [("not_used", None)]


@pytest.mark.long
def test_without_a_mapping_the_rows_are_published_all_the_same(stores: Stores) -> None:
    file = stores.home.mapping_file
    for mapping, reason in (
        ("", "Nothing is mapped, so usage is not reconciled"),
        ("[usage]\namout = 'x'", "usage.amout: no such field"),
        ("[usage", "is not valid TOML"),
    ):
        write_durably(file, mapping.encode())
        assert make_books(stores).is_new
        assert stores.keys() == ["u"]
        ((found,),) = {*stores.rows(f"SELECT reason FROM ({NOT_EVALUATED})")}
        assert reason in found
        tables = stores.rows("SHOW TABLES FROM books.reconciliation")
        names = ("basis", "connections", "lists", "readings", "rules")
        assert tables == [(name,) for name in names]
    write_durably(file, MAPPING.encode())
    build_with_books(stores)
    assert breaks(stores) == [("open", None, None)]


@pytest.mark.long
def test_a_role_that_is_unknown_is_said_and_costs_no_other_rule(stores: Stores) -> None:
    several = (
        ('recorded = "recorded"', ""),
        ("lines[].usage", "total"),
        ('"issued"', '"lines[].quantity"'),  # a record may have several
    )
    said = {
        "late_arrivals": "recorded is not mapped",
        "billed_twice": "total is not in the list of lines",
    }
    for changes, reasons in (
        (((AMOUNT, 'amount = "gone"'),), {"summary": "no record of usage has a field gone"}),
        (several, said),
    ):
        mapping = MAPPING
        for old, new in changes:
            mapping = mapping.replace(old, new, 1)
        publish(stores, mapping=mapping, usage=[used("u"), used("v")])
        found = dict(stores.rows("SELECT rule, reason FROM reconciliation.rules"))
        assert found["not_billed"] is None
        for rule, reason in reasons.items():
            assert reason in found[rule]
            rows = ROWS.get(rule, rule)
            assert stores.rows(f"SELECT count(*) FROM reconciliation.{rows}") == [(0,)]
        views = {name for (name,) in stores.rows("SHOW TABLES FROM books.finance")}
        assert ("month_totals" in views) == (found["summary"] is None)


@pytest.mark.long
def test_numbers_whose_sum_no_decimal_holds_are_not_read(stores: Stores) -> None:
    """Next to the limit, sums are exact; beyond it, only the records that are too large are out."""
    large, near = "9" * 36 + ".00", "9" * 33 + ".25"
    usage = [used("u", large), used("v", large), used("w", near), used("x", "0.01")]
    bills = [
        bill("b", line("w", near), total=near),
        bill("c", line("u", large)),
        bill("d", line("x", "0.02")),
    ]
    publish(stores, usage=usage, billing=bills)
    assert stores.rows(NOT_EVALUATED) == []
    assert stores.rows("SELECT id, sent FROM reconciliation.unreadable ORDER BY 1")[-2:] == [
        ("u", large),
        ("v", large),
    ]
    sums = stores.rows("SELECT used_amount, difference FROM reconciliation.summary")
    assert sums == [(Decimal("9" * 33 + ".26"), Decimal("0.01"))]
    found = "SELECT subject, difference::VARCHAR FROM reconciliation.breaks WHERE gone_at IS NULL"
    assert stores.rows(found) == [("x", "0.01")]


def test_a_query_that_fails_is_not_evaluated_and_all_else_is_published(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_broken(name: str) -> Statement:
        statement = read_statement(name)
        return replace(statement, query="SELECT nothing") if name == "different" else statement

    monkeypatch.setattr(engine, "read_statement", read_broken)
    publish(stores, usage=[used("u"), used("v")])
    assert stores.keys() == ["u", "v"]
    found = dict(stores.rows(NOT_EVALUATED))
    assert found.keys() == {"different"}
    assert found["different"].startswith("The query of different failed: ")
    assert breaks(stores, "rule, state, uncertain IS NULL") == [
        ("different", "open", False),  # nobody knows whether it is gone
        ("not_billed", "open", True),
    ]


@pytest.mark.long
def test_erased_records_are_in_no_table_of_reconciliation(stores: Stores) -> None:
    publish(stores, usage=[used("u"), used("secret-1")], billing=[bill("b", line("u"))])
    assert breaks(stores, "rule, rows") == [("different", 2), ("not_billed", 1)]
    found = stores.rows("SELECT id FROM reconciliation.break_rows WHERE rule = 'not_billed'")
    assert found == [("secret-1",)]
    stores.configure()
    assert erase(stores, "secret-1")
    tables = stores.rows(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'reconciliation'"
    )
    for (table,) in tables:
        text = (
            f"SELECT count(*) FROM reconciliation.{table} AS t WHERE contains(t::VARCHAR, 'secr')"
        )
        assert stores.rows(text) == [(0,)], table
    assert breaks(stores, "rule, state") == [("different", "resolved"), ("not_billed", "resolved")]


@pytest.mark.long
def test_analysts_have_books_at_any_time_of_an_erasure(stores: Stores) -> None:
    publish(stores, usage=[used("u"), used("secret-1")], billing=[bill("b", line("u"))])
    stores.configure()
    is_over = threading.Event()
    missing = list[float]()

    def look_for_books() -> None:
        while not is_over.wait(0.001):
            if not stores.home.books_link.exists():
                missing.append(time.monotonic())

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(look_for_books)
        assert erase(stores, "secret-1")
        is_over.set()
        reader.result()
    assert missing == []
    assert len(BooksFolder(stores.warehouse).every()) == 1


@pytest.mark.long
def test_a_break_of_a_rule_that_is_not_evaluated_any_more_is_uncertain(stores: Stores) -> None:
    publish(stores, billing=[bill("b", line("u")), bill("c", line("u"))])
    assert ("billed_twice", None) in breaks(stores, "rule, uncertain")
    mapping = MAPPING.replace('line_usage = "lines[].usage"\n', "")
    void = bill("c", line("u"), status="void")
    publish(stores, mapping=mapping, billing=[bill("b", line("u")), void])
    (reason,) = [why for rule, why in breaks(stores, "rule, uncertain") if rule == "billed_twice"]
    assert reason.startswith("its rule is not evaluated: ")
    verdict = "SELECT verdict, open_breaks FROM reconciliation.summary"
    assert stores.rows(verdict) == [("balanced", 0)]


@pytest.mark.long
def test_a_decision_ends_when_a_break_has_other_rows(stores: Stores) -> None:
    """The difference stays the same: one of two lines is two lines now."""
    columns = "rule, state, difference::VARCHAR, rows"
    publish(stores, billing=[bill("b", line("u")), bill("c", line("u"))])
    ((break_id,),) = stores.rows(f"SELECT break_id FROM {TWICE}")
    decide(stores, "break_resolve", break_id)
    build_with_books(stores)
    (known,) = stores.rows(f"SELECT {columns} FROM {TWICE}")
    assert known == ("billed_twice", "resolved", "5.00", 1)
    publish(stores, billing=[bill("b", line("u")), bill("c", line("u", "2.00"), line("u", "3.00"))])
    (now,) = stores.rows(f"SELECT {columns} FROM {TWICE}")
    assert now == ("billed_twice", "open", "5.00", 2)
