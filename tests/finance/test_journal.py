"""The journal of a closed month: what a ledger posts of usage that is not billed."""

import csv
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.core.errors import ConfigurationError
from pipelines.finance.books import make_books
from pipelines.finance.close import close_month, reopen_month
from pipelines.finance.closing.accrual import read_accrual
from pipelines.finance.closing.entries import COLUMNS, JournalBasis
from pipelines.finance.closing.journal import describe_journal, write_journal
from pipelines.finance.currencies import minor_unit
from pipelines.finance.mapping import Accounts, mapping_of, parse_mapping, read_mapping
from pipelines.finance.proposals import accept
from pipelines.finance.report import judge, read_figures_of_books
from pipelines.finance.reports.render import render_page
from pipelines.warehouse.duckdb_file import Row
from tests.effort import EFFORT
from tests.finance.any_closes import closed_in_turn
from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used
from tests.reconcile.months import ACCOUNTS, SEPTEMBER, SERVICE, TERMS, close, signing
from tests.reports.conftest import text_of
from tests.versions.homes import Stores, home_of

Line = dict[str, str]
OWN = """
[accounts.kind.different]
result = "5110"
[accounts.partner.other]
accrued = "2199"
"""
USAGE = [
    used("old", "3.00", day="2026-08-10"),
    used("free", "7.00"),
    used("less", "5.00"),
    used("more", "5.00"),
    used("back", "-2.00", currency="USD"),
    used("yen", 12, partner="other", currency="JPY"),
]
BILLS = [bill("b", line("less", "4.50"), line("more", "5.01"), month="2026-09-01")]


def publish_used(stores: Stores, mapping: str = TERMS + ACCOUNTS + OWN) -> None:
    if not stores.home.connections_file.exists():
        stores.configure(**SERVICE)
    names = partners([FIRST, "other"])
    publish(stores, mapping=mapping, partners=names, usage=USAGE, billing=BILLS)


books = home_of(publish_used)


def journal_of(stores: Stores, copy: str = "2026-09/001") -> list[Line]:
    with (stores.home.closes / copy / "journal.csv").open(newline="") as source:
        return [*csv.DictReader(source)]


def shown(lines: list[Line], *kinds: str) -> list[tuple[str, ...]]:
    names = ("kind", "date", "account", "debit", "credit", "currency", "partner")
    return sorted(tuple(each[name] for name in names) for each in lines if each["kind"] in kinds)


def signed(lines: list[Line], *names: str) -> Counter[tuple[str, ...]]:
    """Return debit less credit by some columns, without those that are 0."""
    sums = Counter[tuple[str, ...]]()
    for each in lines:
        key = tuple(each[name] for name in names)
        sums[key] += Decimal(each["debit"] or 0) - Decimal(each["credit"] or 0)  # type: ignore[assignment]
    return Counter({key: amount for key, amount in sums.items() if amount})


@pytest.mark.long
def test_usage_that_is_not_billed_is_accrued_and_reversed(books: Stores) -> None:
    text = close_month(books, *signing())
    lines = journal_of(books)
    assert shown(lines, "accrual") == [
        ("accrual", "2026-09-30", "2190", "", "0.50", "EUR", FIRST),
        ("accrual", "2026-09-30", "2190", "", "10.00", "EUR", FIRST),
        ("accrual", "2026-09-30", "2190", "2.00", "", "USD", FIRST),  # negative: sides are swapped
        ("accrual", "2026-09-30", "2199", "", "12", "JPY", "other"),
        ("accrual", "2026-09-30", "5100", "", "2.00", "USD", FIRST),
        ("accrual", "2026-09-30", "5100", "12", "", "JPY", "other"),
        ("accrual", "2026-09-30", "5100", "3.00", "", "EUR", FIRST),  # of August
        ("accrual", "2026-09-30", "5100", "7.00", "", "EUR", FIRST),
        ("accrual", "2026-09-30", "5110", "0.50", "", "EUR", FIRST),
    ]
    reversed_ = [each for each in lines if each["kind"] == "reversal"]
    assert {(each["period"], each["date"]) for each in reversed_} == {("2026-10", "2026-10-01")}
    assert signed(lines, "account", "currency", "partner") == {}
    assert signed(lines, "entry", "currency", "period") == {}
    ids = {row[0] for row in books.rows("SELECT break_id FROM reconciliation.breaks")}
    assert {each["source"] for each in lines} - ids == {"2026-09-001"}
    assert "Accrued: EUR 10.50, JPY 12, USD \u22122.00." in text
    left_out = duckdb.sql(
        f"SELECT currency, amount::VARCHAR, left_out FROM '{entries_of(books)}' "
        "WHERE left_out IS NOT NULL"
    ).fetchall()
    assert left_out == [("EUR", "-0.0100", "overbilled")]


def ledger_of(stores: Stores) -> dict[str, Any]:
    """Return what the report says of the ledger, amounts as texts by currency."""
    ledger = judge(read_figures_of_books(stores)).ledger
    assert ledger
    said = ledger.as_json()
    parts = (*said["accrual"]["left_out"], *said["accrual"]["months"])
    for sums in (said, said["accrual"], *parts):
        for name, rows in sums.items():
            if isinstance(rows, list) and name not in ("left_out", "months"):
                sums[name] = {row["currency"]: f"{row['amount']:.2f}" for row in rows}
    return said


@pytest.mark.long
def test_the_report_says_who_pays_and_what_the_journal_would_accrue(books: Stores) -> None:
    october = [*USAGE, used("o", "1.00", day="2026-10-05", partner="nobody")]
    names = partners([FIRST, "other"])
    publish(books, mapping=TERMS + ACCOUNTS + OWN, partners=names, usage=october)
    said = ledger_of(books)
    accrued = {"EUR": "10.50", "JPY": "12.00", "USD": "-2.00"}
    assert said == {
        "side": "payable",
        "claim": {"EUR": "0.01", "USD": "2.00"},
        "to_pay": {"EUR": "10.50", "JPY": "12.00"},
        "withheld": None,
        "unclear_overbilled": {},
        "unclear_unbilled": {"EUR": "1.00"},
        "accrual": {
            "month": date(2026, 10, 1),
            "copy": None,
            "is_written": False,
            "accrued": accrued,
            "months": [
                {"month": "2026-09", "amounts": {**accrued, "EUR": "7.50"}},
                {"month": "2026-08", "amounts": {"EUR": "3.00"}},
            ],
            "left_out": [
                {"reason": "overbilled", "amounts": {"EUR": "-0.01"}},
                {"reason": "unknown partner", "amounts": {"EUR": "1.00"}},
            ],
            "reversed_month": None,
            "reversed": {},
        },
    }
    publish_used(books, mapping=TERMS + ACCOUNTS.replace("payable", "receivable") + OWN)
    other = ledger_of(books)
    assert (other["claim"], other["to_pay"]) == (said["to_pay"], said["claim"])
    publish_used(books, mapping=TERMS)
    without = ledger_of(books)
    assert (without["side"], without["claim"], without["to_pay"]) == (None, {}, {})
    assert without["accrual"]["accrued"] == accrued


@pytest.mark.long
def test_the_report_has_the_accrual_of_a_closed_month_as_its_journal(books: Stores) -> None:
    october = [*USAGE, used("o", "1.00", day="2026-10-05", partner="nobody")]
    names = partners([FIRST, "other"])
    publish(books, mapping=TERMS + ACCOUNTS + OWN, partners=names, usage=october, billing=BILLS)
    open_ = judge(read_figures_of_books(books)).ledger
    assert open_
    close(books)
    make_books(books)
    before = judge(read_figures_of_books(books)).ledger
    assert before
    assert (before.reversed_month, before.accrued) == (date(2026, 9, 1), open_.accrued)
    assert before.reversed["EUR"].amount == Decimal("10.50")
    page = text_of(render_page(read_figures_of_books(books)))
    assert "The last journal is that of Sep 2026: it accrues EUR" in page
    close(books, date(2026, 10, 1))
    publish(books, mapping=TERMS, usage=[USAGE[0]])  # which changes nothing in the journal
    closed = judge(read_figures_of_books(books)).ledger
    assert closed
    assert (closed.copy, closed.is_written, closed.month) == (1, True, open_.month)
    assert closed.accrued == open_.accrued
    assert closed.left_out == open_.left_out
    assert closed.months == open_.months
    page = text_of(render_page(read_figures_of_books(books)))
    assert "Oct 2026 is closed. Its journal, in copy 001, accrues EUR" in page


NAMES = """
[accounts.names]
"2190" = "Accrued usage"
"5100" = "Cost of usage"
"""


@pytest.mark.long
def test_readers_see_who_issues_the_bills_and_what_accounts_are_called(books: Stores) -> None:
    publish_used(books, mapping=TERMS)
    page = text_of(render_page(read_figures_of_books(books)))
    assert "Who pays is not known" in page
    publish_used(books, mapping=TERMS + ACCOUNTS.replace("payable", "receivable"))
    page = text_of(render_page(read_figures_of_books(books)))
    assert "You bill the partners, and they pay you." in page
    assert ": debit 2190, credit 5100." in page
    publish_used(books, mapping=TERMS + ACCOUNTS + NAMES)
    page = text_of(render_page(read_figures_of_books(books)))
    assert "The partners bill you, and you pay their bills." in page
    assert ": debit 5100 Cost of usage, credit 2190 Accrued usage." in page
    close(books)
    folder = entries_of(books).parent
    summary, *_others, journal, _open, _roll, _accrual, _signed = openpyxl.load_workbook(
        folder / "2026-09.xlsx"
    )
    assert summary["A2"].value.startswith("The partners bill you")
    rows = [*journal.iter_rows(values_only=True)]
    head = next(list(row) for row in rows if row[0] == "currency")
    place = head.index("account")
    assert head[place + 1] == "account name"
    shown_names = {row[place : place + 2] for row in rows if row[0] in ("EUR", "JPY")}
    assert shown_names == {("2190", "Accrued usage"), ("5100", "Cost of usage")}
    # The columns of the journal are a format.
    assert [*journal_of(books)[0]] == [*COLUMNS]
    accept(books, replace=True)
    kept = read_mapping(books.home.mapping_file)
    assert kept
    assert kept.accounts
    assert kept.accounts.names == {"2190": "Accrued usage", "5100": "Cost of usage"}


def entries_of(stores: Stores) -> Path:
    return stores.home.closes / "2026-09" / "001" / "entries.parquet"


@pytest.mark.long
def test_revenue_has_the_other_sides(books: Stores) -> None:
    close(books)
    cost = signed(journal_of(books), "kind", "account", "currency")
    reopen_month(books, SEPTEMBER, "cid", "as revenue")
    publish_used(books, mapping=TERMS + ACCOUNTS.replace("payable", "receivable") + OWN)
    close(books)
    lines = [each for each in journal_of(books, "2026-09/002") if each["kind"] != "cancellation"]
    revenue = signed(lines, "kind", "account", "currency")
    assert revenue == {key: -amount for key, amount in cost.items()}


@pytest.mark.long
def test_a_new_close_cancels_the_entries_of_the_last_one(books: Stores) -> None:
    close(books)
    for number in (2, 3):
        reopen_month(books, SEPTEMBER, "cid", "a bill was wrong")
        records = [*USAGE, used("new", f"{number}.00")]
        publish(books, mapping=TERMS + ACCOUNTS, usage=records)
        close(books)
    copies = [journal_of(books, f"2026-09/00{number}") for number in (1, 2, 3)]
    names = ("account", "currency", "partner", "period")
    own = [[each for each in copy if each["kind"] != "cancellation"] for copy in copies]
    everything = [each for copy in copies for each in copy]
    assert signed(everything, *names) == signed(own[2], *names)
    entries = [{each["entry"] for each in copy} for copy in copies]
    assert not entries[0] & entries[1] | entries[1] & entries[2] | entries[0] & entries[2]
    cancelled = {each["source"] for each in copies[2] if each["kind"] == "cancellation"}
    assert cancelled == {each["entry"] for each in own[1]}


@pytest.mark.long
def test_corrections_of_usage_are_posted_and_those_of_bills_are_listed(books: Stores) -> None:
    close(books)
    usage = [{**USAGE[1], "amount": "8.25"}, USAGE[0], *USAGE[2:]]
    usage.append(used("october", "1.00", day="2026-10-05"))
    bills = [*BILLS, bill("late", line("free", "7.00"))]
    publish(books, mapping=TERMS + ACCOUNTS, usage=usage)
    publish(books, mapping=TERMS + ACCOUNTS, partners=partners([FIRST, "other"]), billing=bills)
    close(books, date(2026, 10, 1))
    lines = journal_of(books, "2026-10/001")
    assert shown(lines, "correction") == [
        ("correction", "2026-10-31", "5100", "", "1.25", "EUR", FIRST),
        ("correction", "2026-10-31", "5190", "1.25", "", "EUR", FIRST),
    ]
    assert "usage free of 2026-09" in {each["source"] for each in lines}
    folder = books.home.closes / "2026-10" / "001"
    posted = duckdb.sql(
        f"SELECT side, sum(difference)::VARCHAR FROM '{folder}/corrections.parquet' GROUP BY side"
    ).fetchall()
    assert {*posted} == {("usage", "1.25"), ("billing", "7.00")}
    left_out = duckdb.sql(
        f"SELECT amount::VARCHAR FROM '{folder}/entries.parquet' "
        "WHERE kind = 'correction' AND left_out IS NOT NULL"
    ).fetchall()
    assert left_out == [("7.0000",)]


@pytest.mark.long
def test_without_accounts_there_is_no_journal_and_the_close_says_so(books: Stores) -> None:
    publish_used(books, mapping=TERMS)
    text = close_month(books, *signing())
    assert text.endswith("No journal was written: mapping.toml has no [accounts].")
    names = {file.name for file in (books.home.closes / "2026-09" / "001").iterdir()}
    assert not names & {"journal.csv", "entries.parquet"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('side = "payable"', ""),
        ('side = "payable"', 'side = "both"'),
        ('accrued = "2190"', 'accrued = " "'),
        ('rounding = "5900"', 'rounding = "5900"\n[accounts.kind.fees]\nresult = "1"'),
    ],
)
def test_accounts_that_are_wrong_are_refused(before: str, after: str) -> None:
    text = (MAPPING + ACCOUNTS).replace(before, after)
    with pytest.raises(ConfigurationError, match="accounts"):
        mapping_of(text.encode(), Path("mapping.toml"))


@dataclass(frozen=True)
class Found:
    """A break of random books."""

    rule: str
    partner: str | None
    currency: str | None
    month: date | None
    used: Decimal
    difference: Decimal
    state: str
    uncertain: str | None

    def unbilled(self) -> Decimal | None:
        """Return what is accrued of the break; None if nothing is."""
        if self.month is None:
            return None
        is_open = self.state != "resolved" and self.month <= SEPTEMBER
        is_certain = self.uncertain is None and self.currency is not None
        is_unbilled = self.rule in {"not_billed", "different"} and (
            (self.difference < 0) == (self.used > 0)
        )
        is_zero = not self.used or not self.difference
        if is_open and is_certain and is_unbilled and not is_zero:
            return -self.difference
        return None


AMOUNTS = st.decimals(min_value=-9_999, max_value=9_999, places=5) | st.builds(
    lambda number, digits: Decimal(5 * number).scaleb(-digits),  # often half of a minor unit
    st.integers(-999, 999),
    st.integers(1, 5),
)
BREAKS = st.builds(
    Found,
    rule=st.sampled_from(["not_billed", "different", "not_used", "billed_twice"]),
    partner=st.sampled_from(["p", "q", None]),
    currency=st.sampled_from(["EUR", "JPY", "KWD", "UYW", None]),
    month=st.sampled_from([date(2026, 8, 1), SEPTEMBER, date(2026, 10, 1), None]),
    used=AMOUNTS,
    difference=AMOUNTS,
    state=st.sampled_from(["open", "assigned", "resolved"]),
    uncertain=st.sampled_from([None, None, "billing is not proven complete"]),
)
CORRECTIONS = st.tuples(
    st.sampled_from(["usage", "billing"]), st.sampled_from(["EUR", "JPY"]), AMOUNTS
)


CREATE_BOOKS = """
CREATE SCHEMA reconciliation;
CREATE TABLE reconciliation.breaks (rule VARCHAR, month DATE, connection VARCHAR, partner VARCHAR,
    currency VARCHAR, break_id VARCHAR, used_amount DECIMAL(38, 5), difference DECIMAL(38, 5),
    uncertain VARCHAR, doubt VARCHAR, cause VARCHAR, state VARCHAR, own_source VARCHAR);
CREATE TABLE reconciliation.corrections (month DATE, number INTEGER, side VARCHAR,
    connection VARCHAR, id VARCHAR, partner VARCHAR, currency VARCHAR, difference DECIMAL(38, 5),
    posted_to DATE);
CREATE TABLE reconciliation.break_rows (side VARCHAR, connection VARCHAR, id VARCHAR,
    partner VARCHAR, currency VARCHAR, break_id VARCHAR)
"""


def accounts_of_tests() -> Accounts:
    accounts = parse_mapping(ACCOUNTS).accounts
    assert isinstance(accounts, Accounts)
    return accounts


def written(
    folder: Path,
    breaks: list[Found],
    corrections: list[tuple[str, str, Decimal]],
    break_of_c0: str = "",
    posted_to: date = SEPTEMBER,
) -> tuple[Path, list[Row]]:
    """Write the journal of books that have these breaks and corrections; return what it accrues."""
    with duckdb.connect() as db:
        db.execute(
            f"{CREATE_BOOKS}; INSERT INTO reconciliation.break_rows "
            f"VALUES ('usage', 'acme', 'c0', 'p', 'EUR', '{break_of_c0}')"
        )
        for number, each in enumerate(breaks):
            db.execute(
                "INSERT INTO reconciliation.breaks VALUES ($1, $2, 'acme', $3, $4, $5, $6, $7, $8, "
                "NULL, 'missing on the bill', $9, NULL)",
                [
                    *(each.rule, each.month, each.partner, each.currency, f"b{number}"),
                    *(each.used, each.difference, each.uncertain, each.state),
                ],
            )
        for number, (side, currency, difference) in enumerate(corrections):
            db.execute(
                "INSERT INTO reconciliation.corrections VALUES "
                "($1, 1, $2, 'acme', $3, 'p', $4, $5, $6)",
                [date(2026, 8, 1), side, f"c{number}", currency, difference, posted_to],
            )
        accrual = read_accrual(db, SEPTEMBER)
        write_journal(db, folder, (SEPTEMBER, 1), JournalBasis(accounts_of_tests(), None, []))
    return folder / "journal.csv", accrual


def test_what_has_no_entry_is_listed(tmp_path: Path) -> None:
    one = Decimal(1)
    breaks = [
        Found("not_billed", "p", "EUR", None, one, -one, "open", None),
        Found(
            "not_billed", "p", "KWD", SEPTEMBER, Decimal("0.0004"), Decimal("-0.0004"), "open", None
        ),
        Found("not_billed", "p", "JPY", SEPTEMBER, Decimal("12.5"), Decimal("-12.5"), "open", None),
        Found("different", "p", "EUR", SEPTEMBER, one, one, "open", None),
    ]
    file, _accrual = written(tmp_path, breaks, [("usage", "EUR", -one)], "b3")
    listed = f"SELECT source, left_out FROM '{tmp_path}/entries.parquet' WHERE left_out IS NOT NULL"
    assert sorted(duckdb.sql(listed).fetchall()) == [
        ("b0", "no month"),
        ("b1", "rounded to zero"),
        ("b3", "overbilled"),
        ("usage c0 of 2026-08", "overbilled"),
    ]
    with file.open(newline="") as source:
        assert {line["currency"] for line in csv.DictReader(source)} == {"JPY"}
    assert "Accrued: JPY 13." in describe_journal(tmp_path)


REASONS = [
    # Rule, cause, currency, used, difference, uncertain, doubt, own source; reason.
    ("not_billed", "x", "EUR", 5, -5, None, None, None, None),
    ("different", "x", "EUR", -5, 2, None, None, None, None),
    ("different", "x", "EUR", 5, 2, None, None, None, "overbilled"),
    ("different", "x", "EUR", -5, -2, None, None, None, "overcredited"),
    ("different", "x", "EUR", 5, 0, None, None, None, "no difference of amounts"),
    ("different", "other partner", "EUR", 5, -5, None, None, None, "billed to another partner"),
    ("different", "other currency", "EUR", 5, -5, None, None, None, "billed in another currency"),
    ("different", "no currency", "EUR", 5, -5, None, None, None, "billed without a currency"),
    ("unreferenced", "x", "EUR", None, 5, None, None, None, "overbilled"),
    ("unknown_partner", "x", "EUR", 5, -5, None, None, None, "unknown partner"),
    ("disappeared", "x", "EUR", 5, 0, None, None, None, "no longer in its list"),
    ("not_billed", "x", None, 5, -5, None, None, None, "no currency"),
    ("not_billed", "x", "EUR", None, None, None, None, None, "no amount"),
    ("not_billed", "x", "EUR", 5, -5, "a list", None, None, "uncertain: a list"),
    ("not_billed", "x", "EUR", 5, -5, None, "a doubt", None, "uncertain: a doubt"),
    ("own_ledger", "x", "EUR", 5, -5, "a list", None, "ledger", "own books"),
]


def test_every_break_that_is_not_accrued_has_a_reason(tmp_path: Path) -> None:
    with duckdb.connect() as db:
        db.execute(CREATE_BOOKS)
        for number, (*facts, _reason) in enumerate(REASONS):
            db.execute(
                "INSERT INTO reconciliation.breaks (break_id, month, connection, partner, state, "
                "rule, cause, currency, used_amount, difference, uncertain, doubt, own_source) "
                "VALUES ($1, $2, 'acme', 'p', 'open', $3, $4, $5, $6, $7, $8, $9, $10)",
                [f"b{number:02}", SEPTEMBER, *facts],
            )
        write_journal(db, tmp_path, (SEPTEMBER, 1), JournalBasis(accounts_of_tests(), None, []))
    found = duckdb.sql(
        f"SELECT source, left_out FROM '{tmp_path}/entries.parquet' "
        "WHERE kind = 'accrual' AND source <> close ORDER BY source"
    ).fetchall()
    assert [reason for _source, reason in found] == [reason for *_facts, reason in REASONS]


def test_what_is_posted_to_a_later_month_is_accrued_there(tmp_path: Path) -> None:
    used_now = Decimal(6)
    found = Found("not_billed", "p", "EUR", date(2026, 8, 1), used_now, -used_now, "open", None)
    two = [("usage", "EUR", Decimal(2)), ("billing", "EUR", Decimal(1))]
    written(tmp_path, [found], two, posted_to=date(2026, 10, 1))
    assert "Accrued: EUR 4.00." in describe_journal(tmp_path)


# What the entries say that is left out, as the report says it: by reason and currency.
LEFT_OUT = """
SELECT split_part(left_out, ': ', 1) AS reason, currency, count(*), sum(amount)
FROM '{}/entries.parquet'
WHERE kind = 'accrual' AND left_out IS NOT NULL
GROUP BY ALL
ORDER BY reason, currency
"""
Key = tuple[str, str, str]
Rounded: Callable[[Decimal, str], Decimal] = lambda amount, currency: amount.quantize(  # noqa: E731
    minor_unit(currency), ROUND_HALF_UP
)


@pytest.mark.long
@settings(
    max_examples=40 * EFFORT,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(breaks=st.lists(BREAKS, max_size=8), corrections=st.lists(CORRECTIONS, max_size=4))
def test_any_books_have_a_journal_that_balances(
    tmp_path: Path, breaks: list[Found], corrections: list[tuple[str, str, Decimal]]
) -> None:
    file, accrual = written(tmp_path, breaks, corrections)
    with file.open(newline="") as source:
        lines = [*csv.DictReader(source)]
    assert signed(lines, "entry", "period", "currency") == {}
    own = [each for each in lines if each["kind"] != "correction"]
    assert signed(own, "account", "partner", "currency") == {}
    # By kind and partner: what is exact is added, then rounded, and what is left is on rounding.
    exact = defaultdict[Key, Decimal](Decimal)
    for number, each in enumerate(breaks):
        amount = each.unbilled()
        found = {row["source"] for row in lines if row["kind"] == "accrual"}
        if amount is None:
            assert f"b{number}" not in found
            continue
        currency = str(each.currency)
        assert (f"b{number}" in found) == bool(Rounded(amount, currency))
        exact[each.rule, each.partner or "", currency] += amount
    accrued = defaultdict[tuple[str, str], Decimal](Decimal)
    for (_rule, partner, currency), amount in exact.items():
        accrued[partner, currency] += Rounded(amount, currency)
    accruals = [row for row in lines if row["kind"] == "accrual" and row["account"] == "2190"]
    expected = {key: -amount for key, amount in accrued.items() if amount}
    assert signed(accruals, "partner", "currency") == expected
    # What the report says that it accrues.
    said = {(row["currency"],): -row["posted"] for row in accrual if not row["reason"]}
    assert signed(accruals, "currency") == {key: amount for key, amount in said.items() if amount}
    left_out = [row for row in accrual if row["reason"]]
    assert duckdb.sql(LEFT_OUT.format(tmp_path)).fetchall() == [
        tuple(row[name] for name in ("reason", "currency", "number", "amount")) for row in left_out
    ]
    posted = defaultdict[str, Decimal](Decimal)
    for side, currency, amount in corrections:
        if side == "usage":
            posted[currency] += amount
    taken = [row for row in lines if row["kind"] == "correction" and row["account"] == "5100"]
    assert signed(taken, "currency") == {
        (currency,): -Rounded(amount, currency)
        for currency, amount in posted.items()
        if Rounded(amount, currency)
    }


@pytest.mark.slow
def test_any_closes_leave_on_accrued_what_is_still_open(tmp_path: Path) -> None:
    for seed in range(20, 20 + 2 * EFFORT):
        ledger = list[Line]()
        for stores, _books, folder in closed_in_turn(tmp_path, seed):
            ledger += journal_of(stores, f"{folder.parent.name}/{folder.name}")
        assert ledger
        assert signed(ledger, "entry") == {}
        # Every accrual is reversed, whatever was closed again: nothing stays on the account.
        assert signed(ledger, "account", "currency") == {
            key: amount
            for key, amount in signed(ledger, "account", "currency").items()
            if key[0] not in {"2190", "5900"}
        }


def test_a_bill_that_is_taken_back_and_not_billed_again_is_accrued(tmp_path: Path) -> None:
    stores = Stores.open(tmp_path / "home")
    stores.configure(**SERVICE)
    bills = [
        bill("all", line("all", "5.00")),
        bill("all-note", line("all", "5.00"), kind="credit"),
        bill("again", line("again", "7.00")),
        bill("again-note", line("again", "7.00"), kind="credit"),
        bill("again-2", line("again", "7.00")),
        bill("part", line("part", "8.00")),
        bill("part-note", line("part", "3.00"), kind="credit"),
    ]
    amounts = {"all": "5.00", "again": "7.00", "part": "8.00", "none": "1.00"}
    usage = [used(name, amount) for name, amount in amounts.items()]
    publish(stores, mapping=MAPPING, partners=partners([FIRST]), usage=usage, billing=bills)
    accrual = ledger_of(stores)["accrual"]
    assert (accrual["accrued"], accrual["left_out"]) == ({"EUR": "9.00"}, [])
    unbilled = "SELECT usage, used::VARCHAR FROM finance.unbilled_usage ORDER BY used DESC"
    assert stores.rows(unbilled) == [("all", "5.00"), ("none", "1.00")]
