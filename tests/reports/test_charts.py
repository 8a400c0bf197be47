"""Charts: round amounts beside them, and a month that is far too large hides no other one."""

from decimal import Decimal

from pipelines.finance.reports.charts import axis_of, brief, scale_of
from pipelines.finance.reports.queries import Figures
from pipelines.finance.reports.render import render_report
from pipelines.warehouse.duckdb_file import Row
from tests.reports.conftest import HUGE, text_of


def test_an_axis_has_round_numbers_and_all_amounts() -> None:
    for one, other, ticks in (
        ("0", "0", ["0", "1"]),
        ("7500", "0", ["0", "2 k", "4 k", "6 k"]),
        ("8100", "0", ["0", "2.5 k", "5 k", "7.5 k"]),
        ("-1000000", "1000000", ["\u22121 m", "\u2212500 k", "0", "500 k", "1 m"]),
        ("0.3", "0", ["0", "0.1", "0.2", "0.3"]),
        ("12345678901234567890.12", "-5", ["0", "5,000,000 tn", "10,000,000 tn"]),
    ):
        axis = axis_of([Decimal(one), Decimal(other)], 4)
        assert [*axis.ticks.values()] == ticks
        assert axis.low <= min(Decimal(one), Decimal(other), *axis.ticks)
        assert axis.high >= max(Decimal(one), Decimal(other), *axis.ticks)
        assert axis.low < axis.high


def test_a_month_that_is_far_too_large_is_cut_and_says_its_amount(figures: Figures) -> None:
    def row(used: str, billed: str) -> Row:
        return {"used": Decimal(used), "billed": Decimal(billed)}

    sides = ("used", "billed")
    axis = scale_of([row("4", "400"), row("10", "5"), row("0", "-7")], sides, 4)
    assert [axis.low, axis.high, axis.whole] == [-7, 20, 10]
    assert [*axis.ticks.values()] == ["\u22125", "0", "5", "10"]
    shown = [axis.clip(Decimal(each)) for each in ("4", "400", "10", "-7")]
    assert shown == [4, 20, 10, -7]
    assert [axis.is_cut(Decimal(each)) for each in ("10", "400")] == [False, True]
    down = scale_of([row("4", "-400"), row("10", "5")], sides, 4)
    assert [down.low, down.high, down.whole] == [-20, 10, 10]
    for rows in (
        [row("4", "99"), row("10", "5")],
        [row("4", "99")],
        [row("9", "0"), row("0", "0")],
    ):
        assert scale_of(rows, sides, 4).whole is None
    assert brief(Decimal("-1003921.09"), "EUR") == "\u22121,003,921.09"
    assert brief(Decimal(HUGE), "EUR") == "123,000,000,000,000 tn"
    page = render_report(figures)
    assert "A bar with a gap is cut" in text_of(page)
    assert page.count(">123,000,000,000,000 tn</text>") == 2  # used and billed
    assert page.count(">700</text>") == 2
