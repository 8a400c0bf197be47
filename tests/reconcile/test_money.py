"""Money as services write it: currencies in any case, minor units, bills without a period."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from pipelines.app.checkup import run_checks
from pipelines.finance.currencies import read_code
from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.render import render_report
from pipelines.finance.trace_figure import trace_month
from tests.cli.conftest import Cli
from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used
from tests.versions.homes import Record, Stores, home_of

FACTORS = {
    "EUR": 2,
    "JPY": 0,
    "BYR": 0,
    "KWD": 3,
    "CLF": 4,
    "XXX": 2,
}  # of the last one nobody knows
NO_BREAKS = "SELECT rule, cause, subject FROM reconciliation.breaks WHERE rule <> 'unknown_partner'"
MONTHS = "SELECT id, month, month_from FROM temp.billed WHERE bill = '{}' ORDER BY id"
SEPTEMBER, AUGUST, JULY = date(2026, 9, 1), date(2026, 8, 1), date(2026, 7, 1)


def minor(mapping: str, *sides: str) -> str:
    for side in sides:
        mapping = mapping.replace(f"[{side}]\n", f'[{side}]\namount_unit = "minor"\n')
    return mapping


def amount_in(currency: str, *, is_minor: bool) -> int | str:
    """Return 1,234 smallest units of a currency."""
    if is_minor:
        return 1234
    digits = FACTORS[currency]
    return f"{1234 / 10**digits:.{digits}f}"


@pytest.mark.long
@pytest.mark.parametrize("sides", [("billing",), ("usage",), ("usage", "billing")])
def test_amounts_in_minor_units_in_any_case_of_a_currency(
    stores: Stores, sides: tuple[str, ...]
) -> None:
    usage, bills = list[Record](), list[Record]()
    for code in FACTORS:
        spelled = {"usage": f" {code.lower()}\u00a0", "billing": code.title()}
        amounts = {each: amount_in(code, is_minor=each in sides) for each in spelled}
        usage.append(used(code, amounts["usage"], currency=spelled["usage"]))
        billed = line(code, amounts["billing"])
        bills.append(bill(code, billed, currency=spelled["billing"], total=billed["amount"]))
    mapping = minor(MAPPING, *sides)
    publish(stores, mapping=mapping, partners=partners([FIRST]), usage=usage, billing=bills)
    assert (
        stores.rows(
            "SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated AND is_needed"
        )
        == []
    )
    assert stores.rows(NO_BREAKS) == []
    months = "SELECT currency, used_amount::DOUBLE, verdict FROM reconciliation.summary ORDER BY 1"
    assert stores.rows(months) == [
        (code, 1234 / 10**digits, "balanced") for code, digits in sorted(FACTORS.items())
    ]


@pytest.mark.long
def test_a_bill_without_a_period_has_the_months_of_its_usage(stores: Stores) -> None:
    nothing: dict[str, Any] = {"month": None}
    usage = [used("u"), used("v", day="2026-08-10"), used("w", day="2026-08-20")]
    bills = [
        bill("b", line("v"), line("u"), line(None, "1.00"), total="11.00", **nothing),
        bill("c", line("w"), month=" "),
        bill("d", line(None), issued="2026-07-31T23:59:00Z", **nothing),
        bill("e", line("nothing"), issued=None, **nothing),
        bill("f", line(None, "1.00"), month="2026-09-01"),
        bill("g", line(None, "1.00"), month="in autumn"),
    ]
    publish(stores, partners=partners([FIRST]), usage=usage, billing=bills)
    found = [row for name in "bcdefg" for row in stores.rows(MONTHS.format(name))]
    assert found == [
        ("b#0", AUGUST, "usage"),
        ("b#1", SEPTEMBER, "usage"),
        ("b#2", SEPTEMBER, "usage"),
        ("c#0", AUGUST, "usage"),
        ("d#0", JULY, "issue"),
        ("e#0", None, None),
        ("f#0", SEPTEMBER, "period"),
        ("g#0", None, "period"),
    ]
    assert stores.rows("SELECT month, month_from FROM finance.bills WHERE bill = 'b'") == [
        (SEPTEMBER, "usage")
    ]
    trace = trace_month(stores, FIRST, "2026-08")
    (august,) = [figure for figure in trace["sums"] if figure["part"] == "billed"]
    assert (august["published"], august["same"]) == (Decimal("10.00"), True)
    without = MAPPING.replace('period = "month"\n', "")
    publish(stores, mapping=without, partners=partners([FIRST]))
    rules = "SELECT rule FROM reconciliation.rules WHERE NOT evaluated AND is_needed"
    assert stores.rows(rules) == []
    assert stores.rows(MONTHS.format("f")) == [("f#0", SEPTEMBER, "issue")]


def test_currencies_are_read_alike_in_python() -> None:
    spelled = ("eur", " EUR", "Eur\n", "\ufeffeur\u2003", " ", "", None, "euro")
    assert [*map(read_code, spelled)] == [*["EUR"] * 4, None, None, None, "EURO"]


def float_books() -> tuple[list[Record], list[Record]]:
    """Return usage with the noise of floats and bills without it, of several partners."""
    usage, bills = list[Record](), list[Record]()
    noise = {
        "noise": ["0.30000000000000004", "0.000000000000001776"],
        "many": ["0.300004"] * 2600,  # 0.0104 in all
        "alone": [],
    }
    for partner, amounts in noise.items():
        for at, amount in enumerate(amounts):
            name, billed = f"{partner}{at}", "0.30" if amount[:3] == "0.3" else "0.00"
            usage.append(used(name, amount, partner=partner, quantity="0.30000000000000004"))
            one = {"usage": name, "quantity": "0.3", "amount": billed}
            bills.append(bill(name, one, partner=partner))
    usage += [used(f"x{at}", "0.000004", partner="alone") for at in range(3)]
    rest = bill("rest", line("noise0", "0.00", 0), partner="noise", total="0.0000000000000001")
    return usage, [*bills, rest]


@pytest.mark.long
def test_rounding_is_a_column_until_it_adds_up(stores: Stores) -> None:
    usage, bills = float_books()
    names = ("noise", "many", "alone")
    publish(stores, partners=partners(names), usage=usage, billing=bills)
    assert (
        stores.rows(
            "SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated AND is_needed"
        )
        == []
    )
    found = stores.rows("""
        SELECT partner, rule, cause, rows, difference::DOUBLE
        FROM reconciliation.breaks ORDER BY partner""")
    assert found == [
        ("alone", "not_billed", "no bill for the month", 3, -0.000012),
        ("many", "different", "rounding adds up", 5200, -0.0104),
    ]
    months = """
        SELECT partner, rounding <> 0, verdict, rounding = difference
        FROM reconciliation.summary ORDER BY partner"""
    assert stores.rows(months) == [
        ("alone", None, "out of balance", None),
        ("many", None, "out of balance", None),
        ("noise", True, "balanced", True),
    ]


TOLERANT = f"""{MAPPING}
[tolerance]
line_minor = 1
[tolerance.currency.eur]
line_minor = 5
[tolerance.partner.kind]
line_minor = 9
"""


def _tolerant(stores: Stores) -> None:
    stores.configure()
    usage, bills = list[Record](), list[Record]()
    for partner in ("kind", "first"):
        for code in ("USD", "EUR"):
            for cents in (1, 5, 9, 10):
                name = f"{partner} {code} {cents:02}"
                fields = {"partner": partner, "currency": code}
                usage.append(used(name, "1.00", **fields))
                bills.append(bill(name, line(name, f"1.{cents:02}"), **fields))
    usage.append(used("odd", currency="ZZZ"))
    bills.append(bill("odd", line("odd"), currency=" zzz"))
    bills.append(bill("new", line(None, "7.00"), status="Settled"))
    usage.append(used("rebate", "1.00"))
    bills.append(bill("rebate", line("rebate", "1.00"), kind="Rebate"))
    names = ("kind", "first")
    publish(stores, mapping=TOLERANT, partners=partners(names), usage=usage, billing=bills)


tolerant = home_of(_tolerant)


@pytest.mark.long
def test_tolerance_of_a_currency_and_of_a_partner(tolerant: Stores) -> None:
    stores = tolerant
    found = stores.rows("SELECT subject FROM reconciliation.breaks ORDER BY 1")
    assert [name for (name,) in found] == [
        *("first EUR 09", "first EUR 10", "first USD 05", "first USD 09", "first USD 10"),
        *("kind EUR 10", "kind USD 10"),
    ]
    shown = "SELECT tolerated::VARCHAR FROM finance.partner_months ORDER BY partner_id, currency"
    assert stores.rows(shown) == [("0.06",), ("0.01",), ("0.00",), ("0.15",), ("0.15",)]
    cli = Cli(stores.home)
    covered = [("EUR", "0.21", 2), ("USD", "0.16", 2)]
    for command in ("breaks", "report"):
        rows = cli.json(command)["covered"]
        assert [
            (each["currency"], each["tolerated"], each["partner_months"]) for each in rows
        ] == covered
    said = cli("breaks", "--partner", "first").stdout
    assert "No breaks: EUR 0.06 within tolerance, in 1 month of partners." in said
    page = render_report(read_figures_of_books(stores))
    assert "2 months of partners: EUR +0.21 within tolerance" in page


@pytest.mark.long
def test_findings_of_new_values_and_of_currencies_that_nobody_knows(
    tolerant: Stores,
) -> None:
    found = {each.check.code: each.findings for each in run_checks(tolerant)}
    (currency,) = found["currency_unknown"]
    assert currency.message.startswith("ZZZ is no currency of ISO 4217: 1 usage record and 1 bill")
    kind, status = (str(each) for each in found["bill_value_new"])
    assert "kind Rebate" in kind
    assert "Sum: EUR 1.00. Example: rebate." in kind
    assert "status Settled. They do not count as billed. Sum: EUR 7.00. Example: new." in status
