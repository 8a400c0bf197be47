"""What becomes of a break: found, decided about, gone, back; and what is not certain."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines.config.connections import add_connection
from pipelines.core.files import write_durably
from pipelines.publish.build import build, rebuild
from tests.publish.homes import BEGIN, DAY, Record, Stores, copy_home
from tests.publish.named import erase
from tests.reconcile.books import FIRST, MAPPING, bill, decide, line, partners, publish, used

MERCHANT = {"surface": "merchant", "base_url": "https://example.com", "secret": "A_KEY"}
BILLS = [bill("b", line("u", "5.01"))]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one break: a cent more on the bill."""
    made = Stores.open(tmp_path_factory.mktemp("break") / "home")
    publish(made, partners=partners([FIRST]), usage=[used("u")], billing=BILLS)
    made.metadata.close()
    return made.settings.home


@pytest.fixture
def stores(home: Path, tmp_path: Path) -> Iterator[Stores]:
    """A copy of it."""
    opened = copy_home(home, tmp_path / "home", BEGIN + 3 * DAY)
    yield opened
    opened.metadata.close()


def breaks(stores: Stores, columns: str = "state, owner, resolved_by") -> list[tuple[Any, ...]]:
    return stores.rows(f"SELECT {columns} FROM reconciliation.breaks ORDER BY rule, subject")


def bill_at(stores: Stores, amount: str) -> None:
    publish(stores, billing=[bill("b", line("u", amount))])


def test_a_decision_alone_makes_a_new_version(stores: Stores) -> None:
    ((break_id,),) = breaks(stores, "break_id")
    decide(stores, "break_assign", break_id, owner="bob")
    built = build(stores)
    assert built.is_new
    assert breaks(stores) == [("assigned", "bob", None)]
    assert not build(stores).is_new


def test_a_resolution_holds_while_the_difference_is_the_same(stores: Stores) -> None:
    ((break_id,),) = breaks(stores, "break_id")
    decide(stores, "break_resolve", break_id)
    build(stores)
    assert breaks(stores) == [("resolved", None, "ann")]
    bill_at(stores, "5.02")
    assert breaks(stores) == [("open", None, None)]
    bill_at(stores, "5.01")
    assert breaks(stores) == [("resolved", None, "ann")]
    decide(stores, "break_reopen", break_id)
    build(stores)
    assert breaks(stores) == [("open", None, None)]


def test_what_vanishes_is_resolved_and_is_open_when_it_returns(stores: Stores) -> None:
    ((break_id, first_seen),) = breaks(stores, "break_id, first_seen")
    decide(stores, "break_resolve", break_id)
    bill_at(stores, "5.00")
    assert breaks(stores) == [("resolved", None, "evidence")]
    bill_at(stores, "5.01")
    assert breaks(stores, "state, break_id, first_seen") == [("open", break_id, first_seen)]


def test_a_rebuild_keeps_what_breaks_remember(stores: Stores) -> None:
    bill_at(stores, "5.00")
    before = breaks(stores, "break_id, state, first_seen, gone_at, difference")
    rebuild(stores)
    assert breaks(stores, "break_id, state, first_seen, gone_at, difference") == before


def test_what_rests_on_a_partial_list_is_uncertain_and_in_no_total(stores: Stores) -> None:
    publish(stores, usage=[used("u"), used("v")], billing=[bill("b", line("u"))])
    assert breaks(stores, "rule, state, uncertain")[1] == ("not_billed", "open", None)
    publish(stores, complete=False, billing=[bill("b", line("u"))])
    uncertain = ("not_billed", "open", "billing is not proven complete")
    assert breaks(stores, "rule, state, uncertain")[1] == uncertain
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


@pytest.mark.parametrize(
    ("mapping", "reason"),
    [
        ("", "Nothing is mapped, so usage is not reconciled"),
        ("[usage]\namout = 'x'", "usage.amout: no such field"),
        ("[usage", "is not valid TOML"),
    ],
)
def test_without_a_mapping_the_rows_are_published_all_the_same(
    stores: Stores, mapping: str, reason: str
) -> None:
    write_durably(stores.settings.places.mapping_file, mapping.encode())
    built = build(stores)
    assert built.is_new
    assert stores.keys() == ["u"]
    reasons = stores.rows("SELECT DISTINCT reason FROM reconciliation.rules WHERE NOT evaluated")
    assert len(reasons) == 1
    assert reason in reasons[0][0]
    tables = stores.rows("SHOW TABLES FROM reconciliation")
    assert tables == [("basis",), ("breaks",), ("corrections",), ("rules",)]
    write_durably(stores.settings.places.mapping_file, MAPPING.encode())
    build(stores)
    assert breaks(stores) == [("open", None, None)]


@pytest.mark.parametrize(
    ("old", "new", "missing", "reason"),
    [
        ('amount = "amount"', 'amount = "gone"', "summary", "no record of usage has a field gone"),
        ('amount = "amount"', 'amount = "day"', "different", "holds text, not numbers"),
        ('recorded = "recorded"', "", "late_arrivals", "usage.recorded is not mapped"),
    ],
)
def test_a_role_that_is_unknown_is_said_and_costs_no_other_rule(
    stores: Stores, old: str, new: str, missing: str, reason: str
) -> None:
    publish(stores, mapping=MAPPING.replace(old, new, 1), usage=[used("u"), used("v")])
    found = dict(stores.rows("SELECT rule, reason FROM reconciliation.rules"))
    assert reason in found[missing]
    assert found["not_billed"] is None
    assert stores.rows(f"SELECT count(*) FROM reconciliation.{_table(missing)}") == [(0,)]
    assert stores.rows("SELECT count(*) FROM reconciliation.matches WHERE status = 'balanced'") in (
        [(0,)],
        [(1,)],
    )


def _table(rule: str) -> str:
    return "break_rows WHERE rule = 'different'" if rule == "different" else rule


def test_a_query_that_fails_is_not_evaluated_and_the_rows_are_published(stores: Stores) -> None:
    largest: list[Record] = [used(name, "9" * 36 + ".00") for name in ("u", "v")]
    publish(stores, usage=largest)
    found = dict(stores.rows("SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated"))
    assert "overflow" in found["summary"].lower()
    assert sorted(stores.keys()) == ["u", "v"]


def test_erased_records_are_in_no_table_of_reconciliation(stores: Stores) -> None:
    publish(stores, usage=[used("u"), used("secret-1")], billing=[bill("b", line("u"))])
    assert breaks(stores, "rule, rows") == [("different", 2), ("not_billed", 1)]
    found = stores.rows("SELECT id FROM reconciliation.break_rows WHERE rule = 'not_billed'")
    assert found == [("secret-1",)]
    add_connection(stores.settings.places.connections_file, "acme", MERCHANT)
    assert erase(stores, "secret-1") is not None
    tables = stores.rows(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'reconciliation'"
    )
    for (table,) in tables:
        text = (
            f"SELECT count(*) FROM reconciliation.{table} AS t WHERE contains(t::VARCHAR, 'secr')"
        )
        assert stores.rows(text) == [(0,)], table
    assert breaks(stores, "rule, state") == [("different", "resolved"), ("not_billed", "resolved")]
