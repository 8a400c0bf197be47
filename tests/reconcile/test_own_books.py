"""Own books beside bills and usage: each difference once, to the cent, and nothing in silence."""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pytest

from pipelines.core.errors import ConfigurationError
from pipelines.core.files import write_durably
from pipelines.finance import own_check
from pipelines.finance.books import make_books
from pipelines.finance.books_state import why_outdated
from pipelines.finance.breaks import BreakFilter, list_breaks, totals
from pipelines.finance.close import close_month
from pipelines.finance.closing.holding import copies_with
from pipelines.finance.closing.verify import find_problems
from pipelines.finance.mapping import parse_mapping, read_mapping
from pipelines.finance.own_books import sums_of_breaks
from pipelines.finance.proposals import accept
from pipelines.finance.reconcile.own.database import TableRows
from pipelines.finance.reconcile.own.not_read import NotRead
from pipelines.finance.reconcile.own.sources import load_texts
from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.render import render_page
from pipelines.finance.reports.verdicts import judge
from pipelines.finance.statements.tables import prepare
from pipelines.finance.trace_figure import trace_break
from pipelines.finance.trace_source import open_copy
from pipelines.metadata.tables import Close
from tests.finance.workbooks import read_totals
from tests.reconcile.books import MAPPING, bill, decide, line, publish
from tests.reconcile.months import rewrite
from tests.reconcile.own import HEAD, LEDGER, METER, METERED, OCTOBER, SEPTEMBER, publish_own, write
from tests.versions.homes import Stores, home_of

own = home_of(publish_own)
BREAKS = """
SELECT rule, cause, subject, currency, used_amount, billed_amount, own_amount, difference
FROM reconciliation.breaks
WHERE gone_at IS NULL
ORDER BY ALL
"""
SOURCES = """
SELECT source, rows, not_understood, matched, evaluated, reason FROM reconciliation.own_sources
ORDER BY ALL
"""
MATCHED = ("matched by", "matched", "matched, but different")
FIVE = Decimal("5.00")
SEPTEMBER_FIRST = date(2026, 9, 1)
ZERO = Decimal("0.00")
LEDGER_BREAKS = [
    ("missing in own books", "b7", "EUR", FIVE, ZERO, FIVE),
    ("more than once in own books", "b6", "EUR", FIVE, Decimal("10.00"), -FIVE),
    ("only in own books", "unknown", "EUR", None, Decimal("3.00"), Decimal("-3.00")),
    ("only in own books; the bill is void", "v1", "EUR", None, FIVE, -FIVE),
    ("other amount", "b2", "EUR", FIVE, Decimal("7.25"), Decimal("-2.25")),
    ("other currency", "b5", "EUR", FIVE, ZERO, FIVE),
    ("other currency", "b5", "USD", None, FIVE, -FIVE),
    ("other month", "b4", "EUR", FIVE, FIVE, ZERO),
    ("other partner", "b3", "EUR", FIVE, FIVE, ZERO),
    (
        "own rows without an identifier", "?|first|2026-09-01|EUR", "EUR", None,
        Decimal("1.50"), Decimal("-1.50"),
    ),
]  # fmt: skip


def ledger_breaks(stores: Stores) -> list[tuple[Any, ...]]:
    rows = [row for row in stores.rows(BREAKS) if row[0] == "own_ledger"]
    return [
        (cause, subject, currency, *amounts[1:]) for _, cause, subject, currency, *amounts in rows
    ]


def source(stores: Stores, name: str = "ledger") -> tuple[Any, ...]:
    """Return rows, rows that are not understood, matches, whether it was compared, and why not."""
    (found,) = [row[1:] for row in stores.rows(SOURCES) if row[0] == name]
    return found


def remade(stores: Stores) -> Stores:
    assert make_books(stores).is_new
    return stores


def test_each_difference_with_a_ledger_is_one_break(own: Stores) -> None:
    assert ledger_breaks(own) == LEDGER_BREAKS
    assert source(own) == (12, 0, 7, True, None)


@pytest.mark.long
def test_totals_are_compared_where_own_books_have_no_identifier(own: Stores) -> None:
    assert [row for row in own.rows(BREAKS) if row[0] == "own_meter"] == []
    assert source(own, "meter") == (2, 0, 1, True, None)

    write(own, "meter.csv", [*METERED, "first,2026-09-12T23:00:00Z,0.25,EUR"])
    found = [row for row in remade(own).rows(BREAKS) if row[0] == "own_meter"]

    forty, more = Decimal("40.00"), Decimal("40.25")
    key = "first|2026-09-01|EUR"
    assert found == [("own_meter", "other total", key, "EUR", forty, None, more, forty - more)]


def test_books_keep_files_digests_and_totals(own: Stores) -> None:
    files = own.rows("SELECT file, rows, length(sha256) FROM reconciliation.own_files ORDER BY ALL")
    assert files == [
        ("ledger/2026-09.csv", 9, 64),
        ("ledger/2026-10.csv", 3, 64),
        ("meter.csv", 2, 64),
    ]
    sums = own.rows(
        "SELECT currency, own_amount, service_amount, difference FROM reconciliation.own_totals "
        "WHERE source = 'ledger' AND month = DATE '2026-09-01' ORDER BY ALL"
    )
    assert sums == [
        ("EUR", Decimal("41.75"), Decimal("40.00"), Decimal("-1.75")),
        ("USD", FIVE, None, -FIVE),
    ]


def test_every_table_and_column_has_a_comment(own: Stores) -> None:
    without = """
        SELECT name FROM (
            SELECT table_name AS name, comment, database_name FROM duckdb_tables()
            UNION ALL
            SELECT concat(table_name, '.', column_name), comment, database_name
            FROM duckdb_columns()
        ) WHERE database_name = 'books' AND coalesce(comment, '') = ''
    """
    assert own.rows(without) == []


def test_a_month_stays_balanced_whatever_own_books_say(own: Stores) -> None:
    months = own.rows("SELECT verdict, open_breaks FROM finance.partner_months")
    assert months == [("balanced", 0)]
    verdicts = judge(read_figures_of_books(own))
    assert verdicts.answer == "open breaks"
    assert (verdicts.open_breaks, verdicts.own_breaks) == (0, len(LEDGER_BREAKS))
    assert [(each.unbilled, each.overbilled) for each in verdicts.currencies] == [(ZERO, ZERO)]


@pytest.mark.long
def test_decisions_apply_and_sums_of_own_breaks_are_apart(own: Stores) -> None:
    listed = list_breaks(own, BreakFilter(rule="own_ledger"))
    rows = listed.breaks.to_pylist()
    assert len(rows) == len(LEDGER_BREAKS)
    assert totals(rows) == []
    assert {(each["currency"], each["difference"]) for each in sums_of_breaks(rows)} == {
        ("EUR", Decimal("-6.75")),
        ("USD", -FIVE),
    }
    (wrong,) = [row for row in rows if row["subject"] == "b2"]
    decide(own, "break_resolve", wrong["break_id"])
    assert make_books(own).is_new
    states = dict(own.rows("SELECT subject, state FROM reconciliation.breaks"))
    assert [subject for subject, state in states.items() if state == "resolved"] == ["b2"]


def test_a_break_is_traced_to_the_row_of_the_file(own: Stores) -> None:
    ids = dict(own.rows("SELECT subject, break_id FROM reconciliation.breaks"))
    traced = trace_break(own, ids["b2"])
    rows = [
        (row["part"], row["id"], row["amount"], row["file"], row["row"]) for row in traced["rows"]
    ]
    assert ("own", "b2", Decimal("7.25"), "ledger/2026-09.csv", 3) in rows
    assert traced["same"]
    only = trace_break(own, ids["unknown"])["rows"]
    assert [(row["file"], row["row"]) for row in only] == [("ledger/2026-10.csv", 2)]


def as_parquet(stores: Stores) -> str:
    with duckdb.connect() as db:
        for name in ("2026-09", "2026-10"):
            file = stores.home.root / f"ledger/{name}.csv"
            amount = 'TRY_CAST("Amount" AS DECIMAL(9, 3))'
            db.execute(
                f"COPY (SELECT * REPLACE ({amount} AS \"Amount\") FROM read_csv('{file}', "
                f"all_varchar = true)) TO '{file.with_suffix('.parquet')}' (FORMAT parquet)"
            )
    return LEDGER.replace("*.csv", "*.parquet")


def as_workbook(stores: Stores) -> str:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.append(["a column more", *HEAD.split(",")])
    for row in (*SEPTEMBER, *OCTOBER):
        key, partner, day, amount, currency = row.split(",")
        sheet.append([1, key or None, partner, day, float(amount), currency])
    book.save(stores.home.root / "ledger.xlsx")
    return LEDGER.replace("ledger/*.csv", "ledger.xlsx")


def as_table(stores: Stores) -> str:
    columns = ", ".join(f'"{name}"' for name in HEAD.split(","))
    with sqlite3.connect(stores.home.root / "ledger.db") as db:
        db.execute(f"CREATE TABLE lines ({columns})")
        rows = [row.split(",") for row in (*SEPTEMBER, *OCTOBER)]
        db.executemany("INSERT INTO lines VALUES (?, ?, ?, ?, ?)", rows)
    return LEDGER.replace('file = "ledger/*.csv"', 'url_variable = "LEDGER_URL"\ntable = "lines"')


@pytest.mark.long
@pytest.mark.parametrize("written", [as_parquet, as_workbook, as_table])
def test_every_kind_of_source_says_the_same(
    written: Callable[[Stores], str], own: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_URL", f"sqlite:///{own.home.root / 'ledger.db'}")
    mapping = MAPPING + written(own) + METER
    write_durably(own.home.mapping_file, mapping.encode())
    assert ledger_breaks(remade(own)) == LEDGER_BREAKS
    assert source(own) == (12, 0, 7, True, None)


UNREAD = [
    ("b1,first,2026-09-30,5 00,EUR", "amount", "5 00"),
    ('b1,first,2026-09-30,"5,00",EUR', "amount", "5,00"),
    ("b1,first,2026-09-30,,EUR", "amount", None),
    ("b1,first,2026-09-30,0.0000000001,EUR", "amount", "0.0000000001"),
    ("b1,first,30/09/2026,5.00,EUR", "period", "30/09/2026"),
    ("b1,first,2026-09-30,5.00,EURO", "currency", "EURO"),
    ("b1,first,2026-09-30,5.00,", "currency", None),
]


@pytest.mark.long
def test_what_is_not_understood_is_listed_and_makes_the_source_uncertain(own: Stores) -> None:
    write(own, "ledger/2026-09.csv", [HEAD, *SEPTEMBER, *(row for row, *_ in UNREAD)])
    remade(own)
    unread = own.rows("SELECT row, role, sent FROM reconciliation.own_unread ORDER BY row")
    assert unread == [(row, *about[1:]) for row, about in enumerate(UNREAD, 11)]
    assert ledger_breaks(own) == LEDGER_BREAKS  # of b1, nobody knows
    listed = list_breaks(own, BreakFilter())
    sentence = (
        "own_ledger is uncertain: 7 rows not understood, such as row 11 of ledger/2026-09.csv"
    )
    assert any(sentence in doubt.message for doubt in listed.doubts)
    assert all(row["doubt"] for row in listed.breaks.to_pylist())
    assert list(judge(read_figures_of_books(own)).alerts.uncertain) == ["own_ledger"]
    (ledger, meter) = own_check.check(own)
    assert (ledger["not_understood"], meter["not_understood"]) == (7, 0)
    assert [(each["row"], each["role"], each["sent"]) for each in ledger["unread"]] == unread


def lost_file(stores: Stores) -> None:
    for name in ("2026-09", "2026-10"):
        (stores.home.root / f"ledger/{name}.csv").unlink()


def lost_rows(stores: Stores) -> None:
    write(stores, "ledger/2026-10.csv", [HEAD, OCTOBER[0]])


def lost_column(stores: Stores) -> None:
    write(stores, "ledger/2026-10.csv", [HEAD.replace("Amount", "Total"), *OCTOBER])


def lost_encoding(stores: Stores) -> None:
    file = stores.home.root / "ledger/2026-10.csv"
    file.write_bytes(file.read_bytes() + b"\xe9,first,2026-09-30,5.00,EUR\n")


def short_line(stores: Stores) -> None:
    many = [f"x{number},first,2026-09-30,5.00,EUR" for number in range(30_000)]
    write(stores, "ledger/2026-10.csv", [HEAD, *many, "b9,first"])


def other_identifiers(stores: Stores) -> None:
    lines = [row.replace("b", "R-") for row in SEPTEMBER]
    write(stores, "ledger/2026-09.csv", [HEAD, *lines])


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lost_file, "no file is there as ledger/*.csv says, relative to the home"),
        (lost_rows, "has 10 rows, and had 12 before. If that is right, set fewest_rows = 10"),
        (lost_column, "2026-10.csv has no column Amount (role amount). Its columns: Bill, Partner"),
        (lost_encoding, "2026-10.csv cannot be read"),
        (short_line, "2026-10.csv cannot be read"),
        (other_identifiers, "no id of ledger/*.csv is one of billing"),
    ],
)
def test_a_source_that_cannot_be_compared_is_never_zero_breaks(
    change: Callable[[Stores], None], reason: str, own: Stores
) -> None:
    change(own)
    remade(own)
    *_counts, is_compared, why = source(own)
    assert not is_compared
    assert reason in why
    # What was found before stays, and is uncertain; everything else is as it was.
    rows = own.rows("SELECT rule, uncertain FROM reconciliation.breaks WHERE gone_at IS NULL")
    assert len(rows) == len(LEDGER_BREAKS)
    assert all("its rule is not evaluated" in uncertain for _rule, uncertain in rows)
    assert own.rows("SELECT verdict FROM finance.partner_months") == [("balanced",)]
    assert source(own, "meter")[3]
    verdicts = judge(read_figures_of_books(own))
    assert verdicts.answer == "not proven"
    assert any(reason in sentence for sentence in verdicts.why_not_proven())
    (ledger, _meter) = own_check.check(own)
    assert reason in ledger["problem"]


@pytest.mark.long
def test_fewer_rows_are_accepted_down_to_a_number(own: Stores) -> None:
    lost_rows(own)
    for _ in range(2):  # it stays so, whatever the rows of the last books were
        assert make_books(own, again=True).is_new
        assert not source(own)[3]
    accepted = LEDGER.replace("[own.ledger.roles]", "fewest_rows = 10\n[own.ledger.roles]")
    write_durably(own.home.mapping_file, (MAPPING + accepted).encode())
    assert source(remade(own))[3]
    write(own, "ledger/2026-10.csv", [HEAD])
    assert "9 rows, fewer than 10" in source(remade(own))[4]


@pytest.mark.long
def test_the_address_of_a_database_is_nowhere(
    own: Stores, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "p4ssw0rd-of-the-ledger"
    mapping = as_table(own)
    write_durably(own.home.mapping_file, (MAPPING + mapping).encode())
    assert "LEDGER_URL is not set" in source(remade(own))[4]
    for url in (f"nodriver://ann:{secret}@host/books", f"sqlite:////{secret}/{secret}.db"):
        monkeypatch.setenv("LEDGER_URL", url)
        assert make_books(own).is_new
        assert not source(own)[3]
        assert secret not in f"{own.rows('FROM reconciliation.own_sources')}{caplog.text}"
        assert secret not in str(own_check.check(own))


@pytest.mark.long
def test_books_are_made_again_where_own_books_changed(own: Stores) -> None:
    assert not make_books(own).is_new
    write(own, "ledger/2026-10.csv", [HEAD, *OCTOBER, "b7,first,2026-09-30,5.00,EUR"])
    assert not why_outdated(own)
    remade(own)
    assert len(ledger_breaks(own)) == len(LEDGER_BREAKS) - 1
    gone = own.rows("SELECT subject FROM reconciliation.breaks WHERE gone_at IS NOT NULL")
    assert gone == [("b7",)]


@pytest.mark.long
def test_an_accepted_mapping_keeps_own_books(own: Stores) -> None:
    before = parse_mapping(MAPPING + LEDGER + METER).own
    accept(own, replace=True)
    assert parse_mapping(own.home.mapping_file.read_text()).own == before


def test_own_check_says_what_it_understood(own: Stores) -> None:
    ledger, meter = own_check.check(own)
    assert ledger["roles"]["period"] == "Posted on"
    assert [file["name"] for file in ledger["files"]] == [
        "ledger/2026-09.csv",
        "ledger/2026-10.csv",
    ]
    assert (ledger["rows"], ledger["matched"], ledger["problem"]) == (12, 7, "")
    assert [(row["month"], row["currency"], row["amount"]) for row in meter["totals"]] == [
        ("2026-09", "EUR", Decimal("40.00"))
    ]
    write_durably(own.home.mapping_file, MAPPING.encode())
    with pytest.raises(ConfigurationError, match="no own books"):
        own_check.check(own)


@pytest.mark.long
def test_without_own_books_nothing_is_there(own: Stores) -> None:
    write_durably(own.home.mapping_file, MAPPING.encode())
    remade(own)
    assert own.rows("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'own%'") == []
    assert own.rows("SELECT count(*) FROM reconciliation.breaks") == [(0,)]
    assert not list_breaks(own, BreakFilter()).doubts


WRONG = {
    "must have file, or url_variable and table": 'against = "usage"\nconnection = "acme"',
    "not both": 'against = "usage"\nconnection = "acme"\nfile = "a"\ntable = "b"',
    "must be given": 'connection = "acme"\nfile = "a"',
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_source_is_refused(fault: str, tmp_path: Path) -> None:
    file = write_mapping(tmp_path, f"[own.ledger]\n{WRONG[fault]}\n{ROLES}")
    with pytest.raises(ConfigurationError, match=fault):
        read_mapping(file)


@pytest.mark.parametrize(
    "roles",
    ['id = "a"', 'amount = "a"\ncurrency = "b"', 'amount = "a"\ncurrency = "b"\nnumber = "c"'],
)
def test_wrong_roles_are_refused(roles: str, tmp_path: Path) -> None:
    head = '[own.meter]\nagainst = "usage"\nconnection = "acme"\nfile = "a"\n[own.meter.roles]\n'
    with pytest.raises(ConfigurationError, match=r"own\.meter"):
        read_mapping(write_mapping(tmp_path, head + roles))


ROLES = '[own.ledger.roles]\nid = "a"\namount = "b"\ncurrency = "c"\n'


def write_mapping(folder: Path, text: str) -> Path:
    file = folder / "mapping.toml"
    file.write_text(text)
    return file


@pytest.mark.long
def test_what_a_partial_list_may_have_is_uncertain(own: Stores) -> None:
    numbers = range(1, 9)
    billing = [bill(f"b{number}", line(f"u{number}")) for number in numbers]
    billing.append(bill("v1", line("u1"), status="void"))
    publish(own, mapping=MAPPING + LEDGER, complete=False, billing=billing)
    uncertain = dict(own.rows("SELECT subject, uncertain FROM reconciliation.breaks"))
    assert uncertain["unknown"] == "billing is not proven complete"
    # The service has it, own books do not. A credit note that was not read may take it back.
    assert uncertain["b7"] == "billing is not proven complete"


@pytest.mark.long
def test_a_bill_is_found_by_its_number(own: Stores) -> None:
    mapping = MAPPING.replace("issued =", 'number = "id"\nissued =')
    ledger = LEDGER.replace('id = "Bill"', 'number = "Bill"')
    write_durably(own.home.mapping_file, (mapping + ledger).encode())
    assert ledger_breaks(remade(own)) == LEDGER_BREAKS


@pytest.mark.long
def test_quantities_and_amounts_in_cents_are_compared(own: Stores) -> None:
    roles = '\nid = "id"\nquantity = "count"\namount_unit = "minor"\n'
    meter = METER.replace('partner = "who"\n', "") + roles
    rows = [f"u{number},2026-09-10,500,EUR,1" for number in range(1, 7)]
    rows += ["u7,2026-09-10,500,EUR,2", "u8,2026-09-10,500.5,EUR,1"]
    write(own, "meter.csv", ["id,when,value,code,count", *rows])
    write_durably(own.home.mapping_file, (MAPPING + meter).encode())
    found = [row[1:] for row in remade(own).rows(BREAKS)]
    five, more = Decimal("5.000"), Decimal("5.005")
    assert found == [
        ("other amount", "u8", "EUR", five, None, more, five - more),
        ("other quantity", "u7", "EUR", five, None, five, Decimal(0)),
    ]


def closed_copy(stores: Stores) -> Path:
    close_month(stores, SEPTEMBER_FIRST, "ann", "bob")
    return stores.home.closes / "2026-09" / "001"


@pytest.mark.long
def test_the_copy_of_a_month_has_its_own_rows(own: Stores) -> None:
    copy = closed_copy(own)
    assert list(find_problems(copy, "")) == []
    with duckdb.connect() as db:
        rows = db.sql(
            f"SELECT source, count(*) FROM '{copy}/own.parquet' GROUP BY ALL ORDER BY ALL"
        )
        assert rows.fetchall() == [("ledger", 11), ("meter", 2)]
    manifest = json.loads((copy / "manifest.json").read_bytes())
    digest = hashlib.sha256((own.home.root / "meter.csv").read_bytes()).hexdigest()
    assert manifest["own_books"]["meter sha256"] == digest
    assert manifest["own_books"]["ledger evaluated"] is True
    # An identifier on both sides says nothing of the amount.
    said = {name: manifest["own_books"][f"ledger {name}"] for name in MATCHED}
    assert said == dict(zip(MATCHED, ("id", 7, 5), strict=True))
    # What own books say is in no sum of billed minus used.
    own_total, total = "EUR, own books", "EUR, usage and billing"
    query = f"""
    SELECT if(own_source IS NULL, '{total}', '{own_total}'), sum(difference)
    FROM '{copy}/breaks.parquet' WHERE currency = 'EUR' GROUP BY ALL
    """
    totals = read_totals(copy / "2026-09.xlsx")
    for label, difference in duckdb.sql(query).fetchall():
        assert totals["breaks", label, "difference"] == difference
    assert ("breaks", own_total, "open difference") not in totals
    assert ("breaks", "EUR", "difference") not in totals
    # What was signed is traced in the copy, also after the file is gone.
    (break_id,) = own.rows("SELECT break_id FROM reconciliation.breaks WHERE subject = 'b2'")[0]
    traced = trace_break(own, break_id, close="2026-09")
    assert ("own", "b2", 3) in {(row["part"], row["id"], row["row"]) for row in traced["rows"]}
    assert [row["copy"] for row in copies_with(own, "unknown")] == ["2026-09/001"]


@pytest.mark.long
def test_a_copy_of_an_earlier_release_says_which_breaks_are_of_own_books(own: Stores) -> None:
    copy = closed_copy(own)
    with duckdb.connect() as db:
        for name, later in {"breaks": "own_source", "break_rows": "own_source, file"}.items():
            file = copy / f"{name}.parquet"
            file.chmod(0o600)
            db.execute(f"CREATE TABLE {name} AS SELECT * EXCLUDE ({later}) FROM '{file}'")
            db.execute(f"COPY {name} TO '{file}' (FORMAT parquet)")
    rewrite(copy, own, **json.loads((copy / "manifest.json").read_bytes()))
    with own.metadata.transaction() as session:
        (signed,) = session.query(Close).all()
    query = "SELECT own_source, count(*) FROM reconciliation.breaks GROUP BY ALL ORDER BY ALL"
    with open_copy(copy, signed) as db:
        assert db.execute(query).fetchall() == own.rows(query)
        assert prepare(db, SEPTEMBER_FIRST) == [("acme", "first")]


@pytest.mark.long
def test_a_changed_own_row_of_a_copy_is_found(own: Stores) -> None:
    copy = closed_copy(own)
    file = copy / "own.parquet"
    file.chmod(0o600)
    with duckdb.connect() as db:
        db.execute(f"CREATE TABLE rows AS FROM '{file}'")
        db.execute("UPDATE rows SET amount = amount + 1 WHERE id = 'b1'")
        db.execute(f"COPY rows TO '{file}' (FORMAT parquet)")
    problems = list(find_problems(copy, ""))
    assert any("own.parquet" in problem for problem in problems)
    assert any(problem.startswith("own sum of ('ledger'") for problem in problems)


@pytest.mark.long
def test_a_month_is_not_closed_with_other_own_rows_than_the_books_have(own: Stores) -> None:
    write(own, "meter.csv", [*METERED, "first,2026-09-12,0.25,EUR"])
    with pytest.raises(ConfigurationError, match="own books meter: they changed since"):
        closed_copy(own)
    assert not own.home.closes.exists()


@pytest.mark.long
def test_the_report_shows_own_books_and_says_where_there_are_none(own: Stores) -> None:
    figures = read_figures_of_books(own, with_details=True)
    page = render_page(figures)
    assert "<h2>Own books</h2>" in page
    assert "ledger: ledger/*.csv, beside billing" in page
    assert "Bills and credit notes are compared; usage and accruals are not." in page
    assert "11 open breaks" not in page
    assert "10 open breaks" in page
    section = page[page.index('<section id="own">') :].partition("</section>")[0]
    assert "41.75" in section
    assert "not known" not in section
    assert "partner-sync breaks --rule own_ledger" in page
    (listing,) = [each for each in figures.details if each.listing.name == "own-breaks"]
    assert listing.rows == len(LEDGER_BREAKS)
    assert all(each.rows == 0 for each in figures.details if each.listing.name == "breaks")
    lost_file(own)
    page = render_page(read_figures_of_books(remade(own)))
    assert "Not compared</span> no file is there as ledger/*.csv says" in page
    write_durably(own.home.mapping_file, MAPPING.encode())
    figures = read_figures_of_books(remade(own), with_details=True)
    page = render_page(figures)
    assert "<h2>Own books</h2>" in page
    assert "Your own books, such as a ledger, are not compared: none are named" in page
    assert "Breaks with own books" not in page
    assert figures.tables["own_sources"] == []


def test_a_file_that_changes_while_it_is_read_is_not_read(own: Stores) -> None:
    source = parse_mapping(MAPPING + METER).own["meter"]

    def insert(texts: str, file: int) -> str:
        write(own, "meter.csv", [*METERED, "first,2026-09-12,1.00,EUR"])
        return f"CREATE TABLE own{file} AS {texts}"

    with duckdb.connect() as db, pytest.raises(NotRead, match="changed while it was read"):
        load_texts(db, source, own.home.root, insert)


def test_a_file_that_appears_while_others_are_read_is_noticed(own: Stores) -> None:
    source = parse_mapping(MAPPING + LEDGER).own["ledger"]

    def insert(texts: str, file: int) -> str:
        write(own, "ledger/2026-11.csv", [HEAD])
        return f"CREATE TABLE own{file} AS {texts}"

    with duckdb.connect() as db, pytest.raises(NotRead, match="came or went while"):
        load_texts(db, source, own.home.root, insert)


def test_a_table_that_changes_while_it_is_read_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ledger.db"
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE numbers (id INTEGER)")
        db.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in range(2_000)])
        # Each time that it is read, it has other rows.
        db.execute("CREATE VIEW lines AS SELECT id FROM numbers WHERE random() % 2 = 0")
    monkeypatch.setenv("LEDGER_URL", f"sqlite:///{file}")
    with pytest.raises(NotRead, match="lines changed while it was read"):
        list(TableRows("LEDGER_URL", "lines", {"id": "id"}))
    with pytest.raises(NotRead, match="lines in LEDGER_URL has no column other"):
        list(TableRows("LEDGER_URL", "lines", {"id": "other"}))
    with pytest.raises(NotRead, match="nothing in LEDGER_URL"):
        list(TableRows("LEDGER_URL", "nothing", {"id": "id"}))


def test_an_erasure_names_own_books_that_contain_the_value(own: Stores) -> None:
    assert own_check.sources_with(own, "unknown") == [{"source": "ledger", "files": "2026-10.csv"}]
    assert own_check.sources_with(own, "nowhere") == []
    mapping = LEDGER.replace('file = "ledger/*.csv"', 'url_variable = "LEDGER_URL"\ntable = "t"')
    write_durably(own.home.mapping_file, (MAPPING + mapping).encode())
    (row,) = own_check.sources_with(own, "nowhere")
    assert row["files"] == "not searched: t in LEDGER_URL"
