"""The report shows what people said of closes, and which months were reopened."""

import pytest

from pipelines.finance.books import make_books
from pipelines.finance.close import reopen_month
from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.render import render_report
from tests.reconcile.months import SEPTEMBER, publish_closed
from tests.reports.conftest import text_of
from tests.versions.homes import Stores, home_of

closed = home_of(publish_closed)


@pytest.mark.long
def test_notes_and_reopenings_are_on_the_page(closed: Stores) -> None:
    page = render_report(read_figures_of_books(closed))
    assert "Comments on signed months Sep 2026, copy 001: note: as agreed." in text_of(page)
    reopen_month(closed, SEPTEMBER, "ann", "bill <b>77</b> was wrong")
    make_books(closed)
    page = render_report(read_figures_of_books(closed))
    assert "by ann: bill &lt;b&gt;77&lt;/b&gt; was wrong." in page
    assert "note: as agreed. Reopened" in text_of(page)
