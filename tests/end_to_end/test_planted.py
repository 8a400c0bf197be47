"""Errors that the sandbox plants are found to the cent, and nothing else, under any field names."""

from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import httpx
import pytest

from pipelines.app.mapping import accept
from pipelines.app.sync import build_version
from tests.homes import make_home, opened, sync_once
from tests.sandbox.running import started

pytestmark = pytest.mark.long  # two syncs
SIZES = ("--partners", "40", "--usage", "4000", "--billing", "900", "--rate", "1000")
# Of each kind: the rule and the cause of its break; those set apart have none.
FOUND = {
    "amount_off": ("different", "other amount"),
    "missing_bill": ("not_billed", "missing on the bill"),
    "double_bill": ("billed_twice", "usage on two bills"),
    "orphan_usage": ("unknown_partner", "usage of an unknown partner"),
    "orphan_billing": ("unknown_partner", "billing of an unknown partner"),
    "late_usage": ("not_billed", "recorded after the last bill"),
    "restated_after_bill": ("different", "changed after the bill"),
}
BREAKS = "SELECT rule, cause, partner, month, currency, difference FROM reconciliation.breaks"
APART = "SELECT bill, apart, amount FROM reconciliation.bills WHERE apart IS NOT NULL"
Row = tuple[Any, ...]


@pytest.fixture(scope="module", params=["usual", "other"])
def found(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[list[dict[str, Any]], dict[str, list[Row]]]]:
    """The planted errors, and what reconciliation says after the proposal was accepted."""
    names = ("--field-names", request.param)
    with started(*SIZES, *names, "--plant", awkward=False) as running:
        planted = httpx.get(f"{running.url}/__sandbox__/plant").json()["errors"]
        home = make_home(tmp_path_factory.mktemp("planted") / "home", running)
        sync_once(home)
    with opened(home) as session:
        accept(session)
        assert build_version(session).is_new
        with closing(session.warehouse.open()) as db:
            queries = {"breaks": BREAKS, "apart": APART, "rules": RULES, "verdicts": VERDICTS}
            yield planted, {name: db.execute(sql).fetchall() for name, sql in queries.items()}


RULES = "SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated"
VERDICTS = "SELECT partner, month, currency, verdict FROM reconciliation.summary"


def expected(error: dict[str, Any]) -> Row:
    """Return the break of a planted error."""
    kind, amount = error["kind"], Decimal(error["amount"])
    difference = Decimal(error["difference"])
    partner = error["partner_id"]
    if kind.startswith("orphan"):
        partner, difference = error["other_id"], amount if kind == "orphan_billing" else -amount
    return (*FOUND[kind], partner, error["month"], error["currency"], difference)


def test_the_planted_errors_are_found_and_nothing_else(found: Any) -> None:
    planted, results = found
    assert results["rules"] == []
    breaks = [(*row[:3], row[3].isoformat(), *row[4:]) for row in results["breaks"]]
    wanted = [expected(each) for each in planted if each["kind"] in FOUND]
    assert len(wanted) >= 20
    assert sorted(breaks) == sorted(wanted)


def test_void_bills_and_credit_notes_are_set_apart(found: Any) -> None:
    planted, results = found
    apart = {bill: (why, amount) for bill, why, amount in results["apart"]}
    for error in planted:
        if error["kind"] in {"void_bill", "credit_note"}:
            why = "void" if error["kind"] == "void_bill" else "credit note"
            assert apart[error["other_id"]] == (why, Decimal(error["amount"]))
    assert {why for why, _amount in apart.values()} == {"void", "draft", "cancelled", "credit note"}


def test_every_other_month_is_balanced(found: Any) -> None:
    planted, results = found
    wrong = {
        (partner, error["month"], error["currency"])
        for error in planted
        if error["kind"] in FOUND
        for partner in (error["partner_id"], error["other_id"])
    }
    verdicts = {(row[0], row[1].isoformat(), row[2]): row[3] for row in results["verdicts"]}
    others = {verdict for about, verdict in verdicts.items() if about not in wrong}
    assert others <= {"balanced", "tentative"}
    assert {verdict for about, verdict in verdicts.items() if about in wrong} == {"out of balance"}
