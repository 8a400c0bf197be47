"""Errors that the sandbox plants are found to the cent, and nothing else, under any field names."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipelines.config.home import Home
from pipelines.finance.books import make_books
from pipelines.finance.proposals import accept
from tests.homes import make_home, opened, rows, sync_once
from tests.sandbox.running import started

pytestmark = pytest.mark.long  # two syncs
SIZES = ("--partners", "40", "--usage", "4000", "--billing", "900", "--rate", "1000")
# Of each kind: the rule and the cause of its break; those set apart have none.
FOUND = {
    "amount_off": ("different", "other amount"),
    "missing_bill": ("not_billed", "missing on the bill"),
    "double_bill": ("billed_twice", "usage is also on bill"),
    "orphan_usage": ("unknown_partner", "usage of an unknown partner"),
    "orphan_billing": ("unknown_partner", "billing of an unknown partner"),
    "late_usage": ("not_billed", "recorded after the last bill"),
    "restated_after_bill": ("different", "changed after the bill"),
    "fee_line": ("unreferenced", "lines without usage"),
    "total_off": ("unreferenced", "total above its lines"),
    # The mapping that is proposed accepts no fee.
    "accepted_fee": ("unreferenced", "lines without usage"),
}
# A partner may have another bill in the month of the one that is missing.
BREAKS = """
SELECT
    rule, replace(regexp_replace(cause, ' [0-9A-Z-]+$', ''), 'no bill for the month',
        'missing on the bill') AS cause, partner, month::VARCHAR, currency, difference
FROM reconciliation.breaks
"""
VERDICTS = "SELECT partner, month::VARCHAR, currency, verdict FROM reconciliation.summary"
APART = "SELECT bill, apart, amount FROM temp.bills WHERE apart IS NOT NULL"
Row = tuple[Any, ...]


def expected(error: dict[str, Any]) -> Row:
    """Return the break of a planted error."""
    kind, amount = error["kind"], Decimal(error["amount"])
    difference = Decimal(error["difference"])
    partner = error["partner_id"]
    if kind.startswith("orphan"):
        partner, difference = error["other_id"], amount if kind == "orphan_billing" else -amount
    return (*FOUND[kind], partner, error["month"], error["currency"], difference)


@pytest.mark.parametrize("names", ["usual", "other"])
def test_the_planted_errors_are_found_and_nothing_else(names: str, tmp_path: Path) -> None:
    with started(*SIZES, "--field-names", names, "--plant", awkward=False) as running:
        planted = httpx.get(f"{running.url}/__sandbox__/plant").json()["errors"]
        home = make_home(tmp_path / "home", running)
        sync_once(home)
    with opened(home) as session:
        accept(session)
        assert make_books(session).is_new
    assert rows(home, "SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated") == []
    wrong = [each for each in planted if each["kind"] in FOUND]
    assert len(wrong) >= 20
    assert sorted(rows(home, BREAKS)) == sorted(map(expected, wrong))
    check_bills_set_apart(home, planted)
    verdicts: dict[bool, set[str]] = {True: set(), False: set()}
    months = {
        (partner, error["month"], error["currency"])
        for error in wrong
        for partner in (error["partner_id"], error["other_id"])
    }
    for *about, verdict in rows(home, VERDICTS):
        verdicts[tuple(about) in months].add(verdict)
    assert verdicts[False] <= {"balanced", "tentative"}
    assert verdicts[True] == {"out of balance"}


def check_bills_set_apart(home: Home, planted: list[dict[str, Any]]) -> None:
    """Void bills and credit notes are planted and set apart."""
    apart = {bill: (why, amount) for bill, why, amount in rows(home, APART)}
    for error in planted:
        if error["kind"] in {"void_bill", "credit_note"}:
            why = "void" if error["kind"] == "void_bill" else "credit note"
            assert apart[error["other_id"]] == (why, Decimal(error["amount"]))
    assert {why for why, _amount in apart.values()} == {"void", "draft", "cancelled", "credit note"}
