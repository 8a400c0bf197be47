"""What a break names is in the lists: the partner of the other record, the bill that was first."""

from pathlib import Path

from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.render import render_page
from pipelines.finance.reports.text import format_cause, stop_after
from pipelines.warehouse.books import BooksFolder
from tests.reconcile.books import FIRST, bill, line, partners, publish, used
from tests.reports.test_lists import lists_of
from tests.versions.homes import Stores


def test_an_unknown_partner_has_the_partner_that_the_matching_record_names(tmp_path: Path) -> None:
    stores = Stores.open(tmp_path / "home")
    stores.configure()
    bills = [bill("a", line("a"), partner="nobody"), bill("b", line("b"))]
    publish(stores, partners=partners([FIRST]), usage=[used("a"), used("b")], billing=bills)
    lists = lists_of(render_page(read_figures_of_books(stores, with_details=True)))
    (row,) = lists["breaks"]["rows"]
    assert (row["cause"], row["named"]) == ("billing of an unknown partner", "first Ltd")
    named = {row["partner"]: row["named"] for row in lists["partners"]["rows"]}
    assert named == {"nobody": "first Ltd", "first Ltd": None}


FIRST_BILL = "1; a bill has the new 2"  # an identifier may be any text
BEFORE_FIRST_BILLS = """
ALTER TABLE reconciliation.break_rows DROP COLUMN first_bill;
CREATE OR REPLACE VIEW finance.bills_with_breaks AS
SELECT rows.connection, rows.id.regexp_replace('#.*', '') AS bill, true AS is_in_question
FROM reconciliation.break_rows AS rows
WHERE rows.side = 'billing'
GROUP BY ALL;
"""


def test_the_first_bill_of_what_is_billed_twice_is_listed(tmp_path: Path) -> None:
    """However old it is, before the other bill of its month."""
    stores = Stores.open(tmp_path / "home")
    stores.configure()
    days = {"u": "05", "v": "05", "w": "08", "x": "09"}
    bills = [
        bill(FIRST_BILL, line("u"), month="2026-05-01", issued="2026-05-31T22:00:00Z"),
        bill("right", line("v"), month="2026-05-01"),
        bill("again", line("u"), month="2026-06-01", issued="2026-06-30T22:00:00Z"),
        bill("august", line("w"), month="2026-08-01"),
        bill("september", line("x")),
    ]
    usage = [used(name, day=f"2026-{month}-10") for name, month in days.items()]
    publish(stores, partners=partners([FIRST]), usage=usage, billing=bills)
    lists = lists_of(render_page(read_figures_of_books(stores, with_details=True)))
    (row,) = lists["breaks"]["rows"]
    assert row["cause"] == f"usage is also on bill {FIRST_BILL}"
    assert [row["bill"] for row in lists["bills"]["rows"]] == [
        "again",
        FIRST_BILL,
        "september",
        "august",
        "right",
    ]
    assert [row["bill"] for row in lists["lines"]["rows"]] == [0, 1, 2, 3, 4]

    # Books of an earlier release do not say it. Their bills are listed, too.
    folder = BooksFolder(stores.warehouse)
    published = folder.published()
    with folder.write(stores.warehouse.require_published(), published) as (books, db):
        db.execute(BEFORE_FIRST_BILLS)
    folder.link(books)
    lists = lists_of(render_page(read_figures_of_books(stores, with_details=True)))
    others = sorted([FIRST_BILL, "right"])
    shown = [row["bill"] for row in lists["bills"]["rows"]]
    assert shown == ["again", "september", "august", *others]


def test_causes_and_names_are_read_as_sentences() -> None:
    assert format_cause("lines without usage") == "bill lines that name no usage"
    new = "total above its lines, with the new status x"
    assert (
        format_cause(new) == "total of the bill above the sum of its lines, with the new status x"
    )
    assert (format_cause("other amount"), format_cause(None)) == ("other amount", None)
    assert [f"{name}{stop_after(name)}" for name in ("A.E.", "Ltd")] == ["A.E.", "Ltd."]
