"""Charts: what stands on them is text, and what they have no room for is said."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pandas as pd
import pytest

from pipelines.reports import REPORTS
from pipelines.run import charts

(STATEMENT,) = [each for each in REPORTS if each.name == "partner_statement"]
(AT_RISK,) = [each for each in REPORTS if each.name == "revenue_at_risk"]


def frame(currencies: int, months: int) -> pd.DataFrame:
    rows = [
        (f"C{number}", date(2020 + month // 12, month % 12 + 1, 1), Decimal(month))
        for number in range(currencies)
        for month in range(months)
    ]
    return pd.DataFrame(rows, columns=["currency", "month", "closing"])


@pytest.mark.parametrize(
    ("currencies", "months", "words"),
    [
        (2, 3, ""),
        (7, 3, "; the first 6 of 7 by currency"),
        (1, 20, "; the last 18 of each by month"),
    ],
)
def test_a_chart_says_what_it_has_no_room_for(currencies: int, months: int, words: str) -> None:
    given = frame(currencies, months)
    assert (
        charts.caption(STATEMENT, given) == "Used and not billed at the end of each month" + words
    )
    drawn = charts.svg(STATEMENT, given)
    assert ">2020-01<" in drawn or months > charts.PLACES
    assert (">C6<" in drawn) is False
    assert f">{2020 + (months - 1) // 12}-{(months - 1) % 12 + 1:02}<" in drawn


def test_a_name_is_never_markup_nor_a_formula_and_the_page_gives_the_colour() -> None:
    hostile = ["<script>alert(1)</script>", "$\\frac{1}{0}$", "भारत & Söhne"]
    given = pd.DataFrame(
        [("EUR", name, Decimal(1), Decimal("-0.5")) for name in hostile],
        columns=["currency", "rule", "unbilled", "overbilled"],
    )
    drawn = charts.svg(AT_RISK, given)
    assert "<script" not in drawn
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in drawn
    assert "$\\frac{1}{0}$" in drawn
    assert "भारत &amp; Söhne" in drawn
    assert charts.INK not in drawn
    assert "currentColor" in drawn


def test_the_same_figures_are_the_same_picture() -> None:
    given = frame(3, 4)
    assert charts.svg(STATEMENT, given) == charts.svg(STATEMENT, given)
    assert charts.png(STATEMENT, given) == charts.png(STATEMENT, given)


def test_a_report_without_a_chart_has_no_picture() -> None:
    none = replace(STATEMENT, chart=None)
    assert (charts.caption(none, frame(1, 1)), charts.png(none, frame(1, 1))) == ("", b"")
