"""The report shows what people said of closes, and which months were reopened."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from pipelines.finance.books import make_books
from pipelines.finance.close import close_month, reopen_month
from pipelines.finance.report import read_figures_of_books, write_report
from pipelines.finance.reports.render import render_report
from pipelines.finance.signing import Signing
from pipelines.metadata.tables import Close
from tests.cli.conftest import Cli
from tests.reconcile.months import SEPTEMBER, publish_closed, restate
from tests.reconcile.own import publish_own
from tests.reports.conftest import page_text, text_of
from tests.versions.homes import Stores, home_of

closed = home_of(publish_closed)


@pytest.mark.long
def test_a_month_is_signed_off_when_it_is_approved(closed: Stores) -> None:
    """Not when its copy was prepared: nobody had signed it then."""
    with closed.metadata.transaction() as session:
        close = session.query(Close).one()
        close.approved_at = close.closed_at + timedelta(days=9)
        prepared = close.closed_at
    restate(closed, "6.00", "7.00")
    page = text_of(render_report(read_figures_of_books(closed)))
    approved = f"{prepared + timedelta(days=9):%d %b %Y}"
    assert f"Sep 2026 signed off {approved}, 1 record changed since" in page
    assert f"Since the last sign-off, {approved}:" in page
    assert page.count(f"{approved} by ann and bob, names as typed, not verified") == 2
    assert f"signed off {prepared:%d %b %Y}" not in page


@pytest.mark.long
def test_a_damaged_copy_says_nothing_of_the_sign_off(closed: Stores) -> None:
    file = closed.home.closes / "2026-09" / "001" / "used.parquet"
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:-1])
    restate(closed, "6.00", "7.00")
    figures = read_figures_of_books(closed, with_details=True)
    page = text_of(render_report(figures))
    assert "Sep 2026 sign-off not known" in page
    assert "Which months are signed off is not known : see" in page
    assert "not signed off" not in page
    assert "No month is signed off" not in page


@pytest.mark.long
def test_a_month_that_was_closed_with_another_mapping_is_not_called_unchanged(
    closed: Stores,
) -> None:
    file = closed.home.mapping_file
    mapping = file.read_text("utf-8")
    file.write_text(f"# A comment changes no figure.\n{mapping}")
    make_books(closed)
    assert "unchanged since" in text_of(render_report(read_figures_of_books(closed)))
    file.write_text(mapping.replace('quantity = "quantity"\n', "", 1))
    make_books(closed)
    figures = read_figures_of_books(closed, with_details=True)
    page = text_of(render_report(figures))
    assert "with another mapping : the signed figures may be others" in page
    assert "unchanged since" not in page


@pytest.mark.long
def test_notes_and_reopenings_are_on_the_page(closed: Stores) -> None:
    page = render_report(read_figures_of_books(closed))
    assert "Comments on signed months Sep 2026, copy 1: note: as agreed." in text_of(page)
    reopen_month(closed, SEPTEMBER, "ann", "bill <b>77</b> was wrong")
    make_books(closed)
    page = render_report(read_figures_of_books(closed))
    assert "by user ann: bill &lt;b&gt;77&lt;/b&gt; was wrong." in page
    assert "note: as agreed. Reopened" in text_of(page)


def test_signed_months_link_to_the_files_that_are_there(closed: Stores) -> None:
    def links() -> list[str]:
        page = write_report(closed, read_figures_of_books(closed))
        found = re.findall(r'<a href="(\.\./closes/[^"]+)">', page.read_text("utf-8"))
        assert all((page.parent / link).is_file() for link in found)
        return [Path(link).name for link in found]

    copy = closed.home.closes / "2026-09" / "001"
    names = [name for name in ("2026-09.xlsx", "journal.csv") if (copy / name).is_file()]
    assert links() == [*names, "manifest.json"]
    (copy / "2026-09.xlsx").unlink()
    assert links() == [*names[1:], "manifest.json"]
    copy.rename(copy.with_name("elsewhere"))  # as on a machine that shares a bucket
    assert links() == []
    assert "Files" not in text_of(render_report(read_figures_of_books(closed)))


own = home_of(publish_own)


def test_a_signed_month_says_what_was_open_and_why_it_was_signed(own: Stores) -> None:
    said = Signing(accept_open="The partner answers in December.")
    close_month(own, SEPTEMBER, "ann", "bob", said)
    make_books(own)
    text = page_text(own)
    reason = "; ann says why: The partner answers in December."
    at_sign_off = f"10 with own books (10 above materiality); materiality EUR 0.05{reason}"
    assert f"Open at sign-off: {at_sign_off}" in text
    assert f"names as typed, not verified. Open breaks: {at_sign_off}" in text
    assert "With own books, open: EUR" in text
    months = Cli(own.home).json("report")["verdict"]["months"]
    (september,) = (each for each in months if "2026-09-01" in each["months"])
    assert sum(each["number"] for each in september["own"]) == 10
    (own.home.closes / "2026-09" / "001" / "breaks.parquet").unlink()
    text = page_text(own)
    assert "Open at sign-off" not in text
    assert "Open breaks: not known, as the copy cannot be read." in text
