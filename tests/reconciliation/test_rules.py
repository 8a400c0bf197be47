"""Every rule carries its own evidence: rows that hold and rows that break."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pytest
from sqlalchemy import Engine

from pipelines import reconciliation
from pipelines.reconciliation import RULES, Example, Rule
from pipelines.settings import Home
from pipelines.settings.mapping import Mapping
from pipelines.state.breaks import Finding, State
from pipelines.warehouse import corrections, matching, meta, proofs
from pipelines.warehouse.archive import opened
from pipelines.warehouse.frozen import Copies
from pipelines.warehouse.matching import Matching
from tests import ledgers
from tests.reconciliation.examples import AS_OF, laid_out

CASES = [(rule, example) for rule in RULES for example in rule.examples]
JUDGING = [rule for rule in RULES if rule.severity]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Engine]:
    """Yield a ledger without a break."""
    opened = ledgers.opened(tmp_path)
    yield opened
    opened.dispose()


def _found(
    database: duckdb.DuckDBPyConnection, matching: Matching, rules: Sequence[Rule], ledger: Engine
) -> list[Finding]:
    """Return the breaks that stand."""
    meta.prepare(database)
    proofs.tell(database, ledger)
    corrections.tell(database, Copies(opened(Home(Path()))), ledger, AS_OF)
    every = reconciliation.evaluate(database, matching, rules, ledger)
    return [each.finding for each in every if each.state is not State.RESOLVED]


@pytest.mark.parametrize(
    ("rule", "example"), CASES, ids=[f"{rule.name}-{each.words}" for rule, each in CASES]
)
def test_an_example_is_what_its_rule_says(rule: Rule, example: Example, ledger: Engine) -> None:
    with duckdb.connect() as database:
        found = _found(database, laid_out(database, example), [rule], ledger)
        assert [each.cause for each in found] == list(example.found)
        rows = database.execute("SELECT count(*) FROM reconciliation.break_rows").fetchall()
        assert rows == [(sum(each.rows for each in found),)]


@pytest.mark.parametrize("rule", JUDGING, ids=[rule.name for rule in JUDGING])
def test_a_rule_shows_both_what_holds_and_what_breaks(rule: Rule) -> None:
    assert any(example.found for example in rule.examples)
    assert any(not example.found for example in rule.examples)


def test_no_rule_finds_anything_where_all_agrees(ledger: Engine) -> None:
    rows = {"id": "u1", "partner": "P", "month": "2026-09-01", "currency": "EUR", "amount": "5.00"}
    agrees = Example("", [rows], [{**rows, "id": "b1#0", "bill": "b1", "reference": "u1"}])
    with duckdb.connect() as database:
        found = _found(database, laid_out(database, agrees), RULES, ledger)
        assert found == []
        unevaluated = database.execute(
            "SELECT rule FROM reconciliation.rules WHERE NOT evaluated"
        ).fetchall()
        assert unevaluated == []


def test_a_rule_without_its_roles_is_not_evaluated_and_says_why(ledger: Engine) -> None:
    with duckdb.connect() as database:
        nothing = matching.prepare(database, Mapping(), AS_OF)
        matching.match(database, nothing)
        assert _found(database, nothing, RULES, ledger) == []
        said = database.execute(
            "SELECT not_evaluated, breaks FROM reconciliation.rules WHERE rule = 'amount_mismatch'"
        ).fetchall()
        assert said == [("usage has no rows; billing has no rows", None)]


def test_a_break_keeps_its_name(ledger: Engine) -> None:
    rule = next(each for each in RULES if each.name == "usage_without_billing")
    example = next(each for each in rule.examples if each.found)
    names = set[str]()
    for _night in range(2):
        with duckdb.connect() as database:
            found = _found(database, laid_out(database, example), [rule], ledger)
            names.add(found[0].break_id)
    assert names == {"B943692574b63"}
