"""*Resolved breaks* names who accepted the mapping in use, and nobody where nobody did."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from pipelines.finance.books import make_books
from pipelines.finance.close import close_month
from pipelines.finance.proposals import accept
from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.render import render_page
from pipelines.metadata.decisions import decisions_of
from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used
from tests.reports.conftest import page_text
from tests.reports.test_lists import lists_of
from tests.versions.homes import Stores

WHY = "Contract, section 4"
TERMS = f"""
[accepted_fees.support]
field = "lines[].text"
values = ["support"]
reason = "{WHY}."
"""
FEE = f"accepted fees: support: {WHY}."
FEE_LINE = {**line(None, "25.00", 0), "text": "support"}
LISTS: dict[str, Any] = {
    "partners": partners([FIRST]),
    "usage": [used("a")],
    "billing": [bill("b", line("a"), FEE_LINE)],
}


def test_readers_see_why_a_fee_is_accepted(tmp_path: Path) -> None:
    stores = Stores.open(tmp_path / "home")
    stores.configure()
    publish(stores, mapping=f"{MAPPING}\n{TERMS}", **LISTS)
    assert f"Support: {WHY}." in page_text(stores)
    close_month(stores, date(2026, 9, 1), "ann", "bob")
    sheet = load_workbook(stores.home.closes / "2026-09" / "001" / "2026-09.xlsx")["sign-off"]
    said = dict(sheet.iter_rows(max_col=2, values_only=True))
    assert said["why it is accepted: fee support"] == f"{WHY}."


def test_who_accepted_the_mapping_in_use_accepted_the_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Edited by hand, a mapping is nobody's until somebody accepts it as it is."""
    stores = Stores.open(tmp_path / "home")
    stores.configure()
    publish(stores, **LISTS)
    publish(stores, mapping=f"{MAPPING}\n{TERMS}", **LISTS)
    nobody = f"accepted by the mapping ({FEE}); nobody is named: it was edited by hand"
    assert resolved(stores)[0] is None
    monkeypatch.setenv("LOGNAME", "ann")
    accept(stores, replace=True)
    by_ann = ("ann", f"accepted by ann on {stores.clock.now:%d %b %Y} (mapping, {FEE})")
    assert resolved(stores) == by_ann
    file = stores.home.mapping_file
    accepted = file.read_text()
    file.write_text(f"{accepted}# agreed\n")
    person, reason = resolved(stores)
    assert (person, reason[: len(nobody)]) == (None, nobody)
    stores.clock.now += timedelta(days=1)
    monkeypatch.setenv("LOGNAME", "bob")
    for _time in range(2):
        assert "It was not changed." in accept(stores)
    by_bob = ("bob", f"accepted by bob on {stores.clock.now:%d %b %Y} (mapping, {FEE})")
    assert resolved(stores) == by_bob
    # It is again the one that ann accepted.
    file.write_text(accepted)
    assert resolved(stores) == by_ann
    with stores.metadata.transaction() as session:
        people = [decision.person for decision in decisions_of(session, "accept_mapping")]
    assert people == ["ann", "bob"]


def resolved(stores: Stores) -> tuple[str | None, str]:
    """Return who resolved the only break, and why, as the page of new books says it."""
    make_books(stores)
    lists = lists_of(render_page(read_figures_of_books(stores, with_details=True)))
    (one,) = lists["resolved"]["rows"]
    return one.get("resolved_by"), one["reason"]
