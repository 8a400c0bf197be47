"""Lines of bills that name no usage: those that the mapping accepts, and the others, by bill."""

import re
import tomllib
from decimal import Decimal
from typing import Any

import pytest

from pipelines.core.errors import ConfigurationError
from pipelines.finance.books import make_books
from pipelines.finance.close import close_month
from pipelines.finance.mapping import Mapping, mapping_of, parse_mapping
from pipelines.finance.proposals import accept
from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.render import render_report
from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used
from tests.reconcile.months import SEPTEMBER
from tests.reports.conftest import text_of
from tests.versions.homes import Record, Stores

STRANGER = "stranger"
ACCEPTED = f"""{MAPPING}
[accepted_fees.support]
field = "lines[].text"
values = ["Support"]
[accepted_fees.setup]
field = "note"
values = ["setup", "7"]
up_to = {{ EUR = 20, JPY = 100 }}
[accepted_fees.misspelt]
field = "lines[].txt"
values = ["Support"]
[accepted_fees."small fees"]
up_to = {{ EUR = 5.01, jpy = 100 }}
"""
BREAKS = "SELECT subject, difference FROM reconciliation.breaks WHERE rule = 'unreferenced'"
FEES = "SELECT currency, kind, lines, billed FROM finance.accepted_fees ORDER BY ALL"


def fee(amount: str, text: Any = None) -> Record:
    return {**line(None, amount, 0), "text": text}


BILLS = [
    bill("first", line("u"), note="none"),
    bill("support", fee("1000.00", "SUPPORT "), fee("5.00", "Support")),
    bill("support and more", fee("10.00", "support"), fee("5.02", "other")),
    bill("setup", fee("15.00"), note="Setup"),
    bill("setup, as a number", fee("1.00"), total="20.00", note=7),
    bill("setup above its limit", fee("15.00"), fee("5.01"), note="setup"),
    bill("small", fee("-5.00")),
    bill("small, and its total", fee("3.01"), total="5.01"),
    bill("two that are too much", fee("3.00"), fee("2.02")),
    bill("signs do not make it less", fee("3.00"), fee("-2.02")),
    bill("yen", fee("100"), currency="JPY"),
    bill("dollars", fee("1.00"), currency="USD"),
    bill("of a stranger", fee("77.00"), partner=STRANGER),
    bill("credited", fee("8.00", "Support"), kind="credit"),
    bill("void", fee("9.00"), status="void"),
]
WRONG = {
    "support and more": Decimal("5.02"),
    "setup above its limit": Decimal("20.01"),
    "two that are too much": Decimal("5.02"),
    "signs do not make it less": Decimal("0.98"),
    "dollars": Decimal("1.00"),
}


def test_lines_without_usage_are_a_break_of_their_bill_unless_they_are_accepted(
    stores: Stores,
) -> None:
    publish(stores, mapping=ACCEPTED, partners=partners([FIRST]), usage=[used("u")], billing=BILLS)
    assert (
        stores.rows("SELECT rule FROM reconciliation.rules WHERE NOT evaluated AND is_needed") == []
    )
    assert dict(stores.rows(BREAKS)) == WRONG
    assert stores.rows(FEES) == [
        ("EUR", "setup", 3, Decimal("35.00")),
        ("EUR", "small fees", 3, Decimal("0.01")),
        ("EUR", "support", 4, Decimal("1007.00")),
        ("JPY", "small fees", 1, Decimal("100.00")),
    ]
    # Breaks and reasons are the whole difference, once: of the stranger, the bill alone.
    query = """
        SELECT sum(difference) FROM (
            SELECT difference FROM reconciliation.breaks
            UNION ALL SELECT amount FROM reconciliation.without_usage
        )"""
    assert stores.rows(query) == stores.rows("SELECT sum(difference) FROM reconciliation.summary")


@pytest.mark.long
def test_an_accepted_discount_explains_its_month(stores: Stores) -> None:
    discounted = bill("b", line("u"), fee("-1.00", "support"))
    publish(
        stores,
        mapping=ACCEPTED,
        partners=partners([FIRST]),
        usage=[used("u")],
        billing=[discounted],
    )
    verdicts = "SELECT verdict, difference, cause FROM finance.partner_months"
    assert stores.rows(verdicts) == [("fees", Decimal("-1.00"), "lines without usage")]


@pytest.mark.long
def test_the_report_says_who_signed_with_the_terms_that_accept_fees(stores: Stores) -> None:
    def said() -> str:
        return text_of(render_report(read_figures_of_books(stores)))

    stores.configure()
    publish(stores, mapping=ACCEPTED, partners=partners([FIRST]), usage=[used("u")], billing=BILLS)
    assert "No signed month on this page has the same mapping." in said()
    close_month(stores, SEPTEMBER, "ann", "bob")
    make_books(stores)
    signed = r"With the same mapping, Sep 2026 was signed off \d+ Nov 2026 by ann and bob, names"
    assert re.search(signed, said())
    file = stores.home.mapping_file
    file.write_text(file.read_text().replace("EUR = 20", "EUR = 21"))
    make_books(stores)
    assert "No signed month on this page has the same mapping." in said()
    publish(stores, mapping=MAPPING)
    assert "same mapping" not in said()


@pytest.mark.long
def test_an_accepted_mapping_keeps_accepted_fees(stores: Stores) -> None:
    publish(stores, mapping=ACCEPTED, partners=partners([FIRST]), usage=[used("u")], billing=BILLS)
    before = parse_mapping(ACCEPTED).accepted_fees
    accept(stores, replace=True)
    text = stores.home.mapping_file.read_text("utf-8")
    assert parse_mapping(text).accepted_fees == before
    assert [*tomllib.loads(text)["accepted_fees"]] == [*before]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[accepted_fees.a]\nfield = "x"', "accepted_fees.a: field and values must be given"),
        ('[accepted_fees.a]\nvalues = ["x"]', "accepted_fees.a: field and values must be given"),
        ("[accepted_fees.a]", "accepted_fees.a: must have field and values, or up_to"),
        ("[accepted_fees.a.up_to]\nEUR = -1", "accepted_fees.a.up_to.EUR: "),
        ("[accepted_fees.a.up_to]\nEUR = 1e30", "accepted_fees.a.up_to.EUR: "),
        ("[accepted_fees.a.up_to]\neur = 1\nEUR = 2", "eur and EUR are the same currency"),
        ("[materiality]\neur = 1\n'EUR ' = 2", "eur and EUR  are the same currency"),
        ("[tolerance.currency.eur]\n[tolerance.currency.EUR]", "eur and EUR are the same currency"),
        (
            "[accepted_fees.a.up_to]\nEUR = 1\n[accepted_fees.b.up_to]\nEUR = 1",
            "only one of accepted_fees may have no field: b",
        ),
    ],
)
def test_what_accepts_everything_or_nothing_is_refused(
    text: str, problem: str, stores: Stores
) -> None:
    with pytest.raises(ConfigurationError, match=problem.replace(".", "[.]")):
        mapping_of(text.encode(), stores.home.mapping_file)


def test_kinds_are_any_text() -> None:
    kinds = ['it\'s "odd"', "", "ü {0} %"]
    fees = {kind: {"field": "lines[].a", "values": ["'x'"]} for kind in kinds}
    mapping = Mapping.model_validate({"accepted_fees": fees})
    assert [*mapping.fee_roles().values()] == kinds
    assert mapping.fields()["billing.line_fee_2"] == "lines[].a"
