"""What becomes of a break: found, decided about, gone, back; and what is not certain."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.core.files import write_durably
from pipelines.publish.build import build, rebuild
from pipelines.publish.reconciliation import read_inputs
from pipelines.reconcile.engine import reconcile
from tests.publish.homes import OpenHome, Record, Stores
from tests.publish.named import erase
from tests.reconcile.books import FIRST, MAPPING, bill, decide, line, partners, publish, used

BILLS = [bill("b", line("u", "5.01"))]
NOT_EVALUATED = "SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated"
AMOUNT = 'amount = "amount"'
DIFFERENT, TWICE = (f"break_rows WHERE rule = '{rule}'" for rule in ("different", "billed_twice"))


def publish_break(stores: Stores) -> None:
    publish(stores, partners=partners([FIRST]), usage=[used("u")], billing=BILLS)


@pytest.fixture
def stores(open_home: OpenHome) -> Stores:
    """A home with one break: a cent more on the bill."""
    return open_home(publish_break)


def breaks(stores: Stores, columns: str = "state, owner, resolved_by") -> list[tuple[Any, ...]]:
    return stores.rows(f"SELECT {columns} FROM reconciliation.breaks ORDER BY rule, subject")


def bill_at(stores: Stores, amount: str) -> None:
    publish(stores, billing=[bill("b", line("u", amount))])


def test_a_break_is_decided_about_and_gone_and_back(stores: Stores) -> None:
    assigned, resolved = ("assigned", "bob", None), ("resolved", "bob", "ann")
    ((break_id, first_seen),) = breaks(stores, "break_id, first_seen")
    for kind, state in (("break_assign", assigned), ("break_resolve", resolved)):
        decide(stores, kind, break_id, owner="bob")
        assert build(stores).is_new  # for the decision alone
        assert breaks(stores) == [state]
    assert not build(stores).is_new
    for amount, state in (("5.02", assigned), ("5.01", resolved)):
        bill_at(stores, amount)
        assert breaks(stores) == [state], amount  # it holds while the difference is the same
    decide(stores, "break_reopen", break_id)
    build(stores)
    assert breaks(stores) == [assigned]
    decide(stores, "break_resolve", break_id)
    bill_at(stores, "5.00")
    assert breaks(stores) == [("resolved", "bob", "evidence")]
    remembered = breaks(stores, "break_id, state, first_seen, gone_at, difference")
    rebuild(stores)
    assert breaks(stores, "break_id, state, first_seen, gone_at, difference") == remembered
    bill_at(stores, "5.01")
    assert breaks(stores, "state, break_id, first_seen") == [("assigned", break_id, first_seen)]


def test_what_rests_on_a_partial_list_is_uncertain_and_in_no_total(stores: Stores) -> None:
    publish(stores, usage=[used("u"), used("v")], billing=[bill("b", line("u"))])
    assert breaks(stores, "rule, state, uncertain")[1] == ("not_billed", "open", None)
    publish(stores, complete=False, billing=[bill("b", line("u", "4.00"))])
    reason = "billing is not proven complete"
    uncertain = [("different", "open", reason), ("not_billed", "open", reason)]
    assert breaks(stores, "rule, state, uncertain") == uncertain
    assert stores.rows("SELECT sum(open_breaks) FROM reconciliation.summary") == [(0,)]
    assert stores.rows("SELECT count(*) FROM reconciliation.ageing") == [(0,)]
    assert stores.rows("SELECT DISTINCT verdict FROM reconciliation.summary") == [
        ("out of balance",)
    ]


@pytest.mark.long
def test_severity_is_relative_to_what_was_billed_and_rises_with_age(stores: Stores) -> None:
    assert breaks(stores, "severity") == [("low",)]
    for amount, severity in (("5.06", "medium"), ("5.60", "high"), ("5.01", "low")):
        bill_at(stores, amount)
        assert breaks(stores, "severity") == [(severity,)], amount
    stores.clock.now += timedelta(days=10)
    bill_at(stores, "5.01")
    assert breaks(stores, "age_days > 7, severity") == [(True, "medium")]


@pytest.mark.long
def test_without_a_mapping_the_rows_are_published_all_the_same(stores: Stores) -> None:
    file = stores.home.mapping_file
    for mapping, reason in (
        ("", "Nothing is mapped, so usage is not reconciled"),
        ("[usage]\namout = 'x'", "usage.amout: no such field"),
        ("[usage", "is not valid TOML"),
    ):
        write_durably(file, mapping.encode())
        assert build(stores).is_new
        assert stores.keys() == ["u"]
        ((found,),) = {*stores.rows(f"SELECT reason FROM ({NOT_EVALUATED})")}
        assert reason in found
        tables = stores.rows("SHOW TABLES FROM reconciliation")
        assert tables == [("basis",), ("breaks",), ("corrections",), ("rules",)]
    write_durably(file, MAPPING.encode())
    build(stores)
    assert breaks(stores) == [("open", None, None)]


def test_a_role_that_is_unknown_is_said_and_costs_no_other_rule(stores: Stores) -> None:
    publish(stores, usage=[used("u"), used("v")])
    for old, new, rule, rows, reason in (
        (AMOUNT, 'amount = "gone"', "summary", "summary", "no record of usage has a field gone"),
        (AMOUNT, 'amount = "day"', "different", DIFFERENT, "holds text, not numbers"),
        ('recorded = "recorded"', "", "late_arrivals", "late_arrivals", "recorded is not mapped"),
        ("lines[].usage", "total", "billed_twice", TWICE, "total is not in the list of lines"),
    ):
        publish(stores, mapping=MAPPING.replace(old, new, 1))
        found = dict(stores.rows("SELECT rule, reason FROM reconciliation.rules"))
        assert reason in found[rule]
        assert found["not_billed"] is None
        assert stores.rows(f"SELECT count(*) FROM reconciliation.{rows}") == [(0,)]
        views = {name for (name,) in stores.rows("SHOW TABLES FROM finance")}
        assert ("month_totals" in views) == (found["summary"] is None)


def test_a_query_that_fails_is_not_evaluated_and_the_rows_are_published(stores: Stores) -> None:
    largest: list[Record] = [used(name, "9" * 36 + ".00") for name in ("u", "v")]
    publish(stores, usage=largest)
    found = dict(stores.rows(NOT_EVALUATED))
    assert "overflow" in found["summary"].lower()
    assert sorted(stores.keys()) == ["u", "v"]


def test_a_version_with_other_relations_is_reconciled_anew(stores: Stores, tmp_path: Path) -> None:
    file = tmp_path / "version.duckdb"
    file.write_bytes(stores.warehouse.require_published().path.read_bytes())
    with duckdb.connect(file) as db:
        db.execute("DROP TABLE reconciliation.exceptions")
        db.execute("CREATE VIEW reconciliation.exceptions AS SELECT 1 AS key")
        reconcile(db, read_inputs(stores))
        assert db.execute(NOT_EVALUATED).fetchall() == []


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
