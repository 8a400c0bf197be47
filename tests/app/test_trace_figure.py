"""Each figure is added up again from what the service sent, or the trace says why it is not."""

import os
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines.archive.scan_file import SealedScan
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.core.files import write_durably
from pipelines.finance.breaks import BreakFilter, list_breaks
from pipelines.finance.closing.write import Basis, write_copy
from pipelines.finance.mapping import BillingRoles, Mapping
from pipelines.finance.reconciled import create_rows, open_books
from pipelines.finance.trace_figure import RawAmounts, trace_break, trace_month
from pipelines.load.records import UnusableRecord
from pipelines.metadata.tables import Close
from pipelines.versions.prune import prune
from tests.app.conftest import ESCAPED, EVIL, MANY_DIGITS, USAGE
from tests.cli.conftest import Cli
from tests.reconcile.books import FIRST, MAPPING, bill, line, publish, used
from tests.versions.homes import Stores
from tests.versions.named import erase

MONTH = "2026-09"
SUMMARY = """
SELECT partner, currency, used_amount, billed_amount, credited_amount, not_counted_amount
FROM reconciliation.summary
ORDER BY ALL
"""
PARTS = ("used", "billed", "credited", "not counted")


def traced(stores: Stores, partner: str = FIRST, currency: str = "") -> dict[str, Any]:
    return trace_month(stores, partner, MONTH, currency)


def problems(found: dict[str, Any]) -> dict[str, str]:
    return {each["id"]: each["problem"] for each in found["rows"] if each["problem"]}


def file_of(stores: Stores, stream: str) -> Path:
    (file,) = (stores.archive.folder / "acme" / stream).iterdir()
    return file


def test_every_month_of_every_partner_is_proven(books: Stores) -> None:
    summary = books.rows(SUMMARY)
    assert {row[:2] for row in summary} == {(FIRST, "EUR"), ("jp", "EUR"), ("jp", "JPY")}
    for partner, currency, *amounts in summary:
        found = traced(books, partner, currency)
        assert (found["same"], found["problem"], problems(found)) == (True, "", {})
        published = {part: each for part, each in zip(PARTS, amounts, strict=True) if each}
        assert {each["part"]: each["from_raw"] for each in found["sums"]} == published
    rows = {each["id"]: each for each in traced(books, EVIL)["rows"]}
    assert [f"{key} {each['part']} {each['from_raw']}" for key, each in rows.items()] == [
        *("u used 5.00", "v used 2.00", "x used 1.00", "y used 3.00"),
        *("b#0 billed 5.01", "b#1 billed 2.00", "b#2 billed 9.00", "b#rest billed 1.00"),
        *("c#0 billed 3.00", "note#0 credited -1.00", "void#0 not counted 5.00"),
    ]
    place = (rows["c#0"]["file"], rows["c#0"]["page"], rows["c#0"]["row"])
    assert place == (f"acme/billing/{file_of(books, 'billing').name}", 1, 1)


@pytest.mark.long
def test_a_bill_without_a_total_is_proven(books: Stores) -> None:
    unpriced = bill("none", line("v", "2.00"), month="2026-10-01", total=None)
    publish(books, complete=False, billing=[unpriced])
    assert trace_month(books, FIRST, "2026-10")["same"]


@pytest.mark.long
def test_a_signed_figure_is_traced_in_its_copy(books: Stores) -> None:
    """Although the records have changed since; what the copy does not have is an error."""
    before = traced(books)
    found = [
        each
        for each in list_breaks(books, BreakFilter()).breaks.to_pylist()
        if each["partner"] == FIRST
    ]
    broken = found[0]["break_id"]
    folder = books.home.closes / "2026-09" / "001"
    sign(books, folder)
    publish(books, complete=False, usage=[used("u", "6.00")])
    assert traced(books)["sums"] != before["sums"]
    for close in ("2026-09", "2026-09/001"):
        signed = trace_month(books, FIRST, MONTH, close=close)
        assert signed["source"] == "The copy 2026-09/001 of version 2"
        assert (signed["sums"], signed["same"]) == (before["sums"], True)
    row = trace_break(books, broken, "2026-09")["rows"][0]
    assert (row["partner"], str(row["date"])[:7]) == (FIRST, "2026-09")
    assert {"number", "quantity", "price"} <= row.keys()
    for wrong in ("2026-10", "2026-09/002", "x"):
        with pytest.raises(ConfigurationError, match=f"closed as {wrong}. Copies: 2026-09/001"):
            trace_month(books, FIRST, MONTH, close=wrong)


def sign(stores: Stores, folder: Path) -> None:
    """Write the copy of September and record it, whatever is missing in these books."""
    with open_books(stores) as (version, db):
        create_rows(db)
        close = Close(
            month=date(2026, 9, 1),
            number=1,
            version=version.number,
            note="",
            preparer="ann",
            reviewer="bob",
            closed_at=stores.clock.utc_now(),
            manifest_sha256="",
        )
        mapping = stores.home.mapping_file.read_bytes()
        basis = Basis(mapping, None, [], "", None, None, (os.getuid(), None))
        close.manifest_sha256 = write_copy(db, close, folder, basis, stores.warehouse.store)
    with stores.metadata.transaction() as session:
        session.add(close)


def test_every_break_is_proven(books: Stores) -> None:
    for each in list_breaks(books, BreakFilter()).breaks.to_pylist():
        found = trace_break(books, each["break_id"])
        assert (found["same"], problems(found)) == (True, {})
        amounts = {one["part"]: one["from_raw"] for one in found["sums"]}
        assert amounts.get("billed", 0) - amounts.get("used", 0) == each["difference"]


def test_a_credit_note_is_read_as_it_is_billed() -> None:
    amounts = RawAmounts(
        {f"billing.{name}": name for name in ("id", "amount", "kind")}
        | {"billing.line_amount": "lines[].n"},
        Mapping(billing=BillingRoles(credit_kinds=("credit",), amount_unit="minor")),
    )
    lines = [{"n": "250"}, {"n": "-50"}, {}]
    record = {"id": "c#1", "amount": "200", "lines": lines, "kind": "Credit "}
    ids = ("c#1#0", "c#1#1", "c#1#2", "c#1#3", "c#1#rest", "c#1")
    rows = [{"stream": "billing", "id": each, "currency": "EUR"} for each in ids]
    assert [amounts.read(row, record) for row in rows] == [
        *(Decimal("-2.50"), Decimal("-0.50"), None, None),
        *(Decimal("1.00"), Decimal("-2.00")),
    ]
    odd = {**record, "amount": "abc", "lines": [{"n": "250"}, {"n": "abc"}]}
    assert amounts.read(rows[0], odd) == Decimal("-2.50")
    with pytest.raises(UnusableRecord, match="has no amount but `abc`"):
        amounts.read(rows[1], odd)


def replace_file(stores: Stores) -> None:
    file_of(stores, "usage").write_bytes(file_of(stores, "billing").read_bytes())


def prune_all(stores: Stores) -> None:
    publish(stores, usage=[*USAGE, used("z", partner="jp")])
    prune(stores, stores.clock.now)


@pytest.mark.long
@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda stores: file_of(stores, "usage").unlink(), "is missing."),
        (lambda stores: file_of(stores, "usage").write_bytes(b"damaged"), "is damaged"),
        (replace_file, "has another record in its place."),
        (
            lambda stores: SealedScan.open(file_of(stores, "usage")).erase(
                lambda raw: b'"v"' in raw
            ),
            "The record was erased.",
        ),
        (prune_all, "was pruned."),
    ],
)
def test_what_cannot_be_read_is_named(
    books: Stores, harm: Callable[[Stores], object], words: str
) -> None:
    harm(books)
    found = traced(books)
    assert not found["same"]
    assert words in problems(found)["v"]
    sums = {each["part"]: each for each in found["sums"]}
    assert not sums["used"]["same"]
    assert sums["used"]["problem"].endswith(" of its 4 rows.")
    assert sums["credited"]["same"]


@pytest.mark.long
def test_a_trace_after_an_erasure_says_so(books: Stores) -> None:
    assert erase(books, "v")
    found = traced(books)
    assert "v" not in [each["id"] for each in found["rows"]]
    (one,) = [each for each in found["sums"] if each["part"] == "used"]
    assert one["from_raw"] == Decimal(9)
    says_so = "If records were erased, the figure still contains them." in one["problem"]
    assert says_so == (one["published"] == Decimal(11))


@pytest.mark.long
def test_an_amount_that_is_none_is_not_passed_over(books: Stores) -> None:
    publish(books, usage=[*USAGE[1:], used("u", "unknown")])
    found = traced(books)
    assert problems(found) == {"u": "The raw record has no amount but `unknown`."}
    assert [each["same"] for each in found["sums"]] == [False, True, True, True]


def test_another_mapping_than_the_published_one_is_named(books: Stores) -> None:
    other = MAPPING.replace('amount = "total"', 'amount = "month"')
    write_durably(books.home.mapping_file, other.encode())
    found = traced(books)
    assert "newer than these books. Run `partner-sync reconcile`" in found["problem"]
    books.home.mapping_file.unlink()
    with pytest.raises(ConfigurationError, match="The mapping is empty"):
        traced(books)


def test_what_is_not_there_is_refused(books: Stores, stores: Stores) -> None:
    with pytest.raises(PartnerSyncError, match="Nothing is published yet"):
        traced(stores)  # nothing is published
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: trace_break(books, "B1"), "have no break_id `B1`"),
        (lambda: trace_month(books, "nobody", MONTH), "have no partner `nobody`"),
        (lambda: trace_month(books, FIRST, "2026-10"), "Possible values: 2026-09."),
        (lambda: trace_month(books, FIRST, MONTH, "USD"), "Possible values: EUR, JPY."),
        (lambda: trace_month(books, FIRST, MONTH, "JPY"), "first has neither usage nor bills in"),
    ]
    for call, message in calls:
        with pytest.raises(ConfigurationError, match=message):
            call()


def test_commands_show_the_sums_and_whether_they_are_the_same(books: Stores) -> None:
    cli = Cli(books.home)
    text = cli("trace", "month", EVIL, MONTH, "--currency=EUR").stdout
    assert "Version 2 has the same sums as the records of the service." in text
    found = cli.json("trace", "month", "jp", MONTH)
    assert [each["from_raw"] for each in found["sums"]] == ["0.5", MANY_DIGITS, "700", "900"]
    (break_id,) = [each["break_id"] for each in cli.json("breaks", "--severity=low")["breaks"]]
    file_of(books, "usage").unlink()
    text = cli("trace", "break", break_id, code=3).stdout
    assert "A sum differs from the records of the service, or cannot be compared." in text
    assert "is missing." in text
    refused = cli("trace", "month", EVIL, MONTH, "--currency=JPY", code=2).stderr
    assert f"{ESCAPED} has neither usage nor bills in 2026-09 in JPY, as of version 2." in refused
