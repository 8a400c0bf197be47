"""Which months the report shows, and of which it says that they are right."""

from datetime import date

import pytest

from pipelines.app.nightly import build_with_books
from pipelines.finance.close import close_month
from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.render import render_report
from tests.reconcile.books import bill, home_with, line, publish, used
from tests.reports.conftest import page_text, text_of
from tests.versions.homes import Record, Stores

advance = home_with(
    [used("a"), used("b", day="2027-03-01"), used("c", day="2026-11-01")],
    [bill("a", line("a")), bill("b", line("b"), month="2027-03-01")],
)


@pytest.mark.long
def test_a_month_that_is_billed_in_advance_is_not_right_yet(advance: Stores) -> None:
    text = page_text(advance)
    months = "Sep 2026 not signed off Yes: balanced Difference: none. Mar 2027 not signed off {}"
    assert months.format("No open break so far. Difference: none.") in text


paid = home_with(
    [
        used("a"),
        used("b", day="2026-08-10"),
        used("d", day="2026-11-01"),
        {**used("c", day="2026-07-10"), "amount": None},
    ],
    [
        bill("a", line("a")),
        bill("b", line("b"), month="2026-08-01"),
        bill("c", lines=[line("c", None)], total=None, month="2026-07-01"),
        bill("d", total=None),
    ],
)


@pytest.mark.long
def test_a_month_in_which_an_amount_is_missing_is_not_right(paid: Stores) -> None:
    figures = read_figures_of_books(paid)
    assert [row["is_balanced"] for row in figures.tables["months"]] == [False, True, False, False]
    text = text_of(render_report(figures))
    assert "Sep 2026 not signed off No open break, but not balanced. Difference: none." in text


A: dict[str, list[Record]] = {"usage": [used("a")], "billing": [bill("a", line("a"))]}
two_months = home_with(
    [*A["usage"], used("b", day="2026-06-05")],
    [*A["billing"], bill("b", line("b"), month="2026-06-01")],
)


@pytest.mark.long
def test_a_closed_month_from_which_all_records_were_moved_is_named(two_months: Stores) -> None:
    two_months.configure()
    close_month(two_months, date(2026, 6, 1), "ann", "bob")
    build_with_books(two_months)
    moved = [used("b", day="2026-05-05")], [bill("b", line("b"), month="2026-05-01")]
    publish(two_months, usage=[*A["usage"], *moved[0]], billing=[*A["billing"], *moved[1]])
    text = page_text(two_months)
    assert "Jun 2026 signed off, 2 records changed since No amounts: EUR. " in text
