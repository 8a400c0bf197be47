"""What a break names is in the lists: the partner of the other record, the bill that was first."""

from pathlib import Path

from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.render import render_page
from tests.reconcile.books import FIRST, bill, line, partners, publish, used
from tests.reports.test_lists import lists_of
from tests.versions.homes import Stores


def test_an_unknown_partner_has_the_partner_that_the_matching_record_names(tmp_path: Path) -> None:
    stores = Stores.open(tmp_path / "home")
    stores.configure()
    bills = [bill("a", line("a"), partner="nobody"), bill("b", line("b"))]
    publish(stores, partners=partners([FIRST]), usage=[used("a"), used("b")], billing=bills)
    lists = lists_of(render_page(read_figures_of_books(stores, with_details=True)))
    cause = "billing of an unknown partner; the matching record names first Ltd"
    assert [row["cause"] for row in lists["breaks"]["rows"]] == [cause]
    named = {row["partner"]: row["named"] for row in lists["partners"]["rows"]}
    assert named == {"nobody": "first Ltd", "first Ltd": None}
