"""The shelf of reports: every figure of a small reconciliation, and what is said where it lacks."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from pipelines import reports
from pipelines.reports import REPORTS, Report
from tests.reports.conftest import META, RECONCILIATION, made

D = Decimal
SEPTEMBER = date(2026, 9, 1)
EVERY = pytest.mark.parametrize("report", REPORTS, ids=lambda each: each.name)
# A query, and its rows.
FIGURES = [
    (
        (
            "SELECT partner, currency, opening, used, billed, closing, open_breaks, verdict "
            "FROM reports.partner_statement WHERE month = '2026-09-01' ORDER BY partner, currency"
        ),
        [
            ("p1", "EUR", D("1"), D("30.10"), D("30.11"), D("0.99"), 1, "out of balance"),
            ("p2", "EUR", D("0"), D("7"), D("7"), D("0"), 0, "balanced"),
            ("p2", "JPY", None, None, None, None, 1, "out of balance"),
            ("p3", "KWD", D("0"), D("0.001"), D("0"), D("0.001"), 0, None),
        ],
    ),
    (
        (
            "SELECT partner, currency, used_rows, used_amount, expected_amount "
            "FROM reports.usage_by_partner ORDER BY partner, currency"
        ),
        [
            ("p1", "EUR", 2, D("30.10"), D("30")),
            ("p2", "EUR", 1, D("7"), D("7")),
            ("p2", "JPY", 1, D("16155812057580869"), D("16155812057580869")),
        ],
    ),
    (
        (
            "SELECT month, partner, currency, billed_amount, variance, not_evaluated "
            "FROM reports.billing_by_partner WHERE partner = 'p1' ORDER BY month"
        ),
        [
            (SEPTEMBER, "p1", "EUR", D("30.11"), D("0.01"), None),
            (date(2026, 10, 1), "p1", "EUR", D("4.125"), None, "usage.amount is not mapped"),
        ],
    ),
    (
        (
            "SELECT currency, rule, bucket, breaks, artefacts, amount, unbilled, overbilled, "
            "difference, oldest_days FROM reports.revenue_at_risk ORDER BY currency, rule"
        ),
        [
            ("EUR", "amount_mismatch", "0-1", 1, 0, D("30.11"), D(0), D("0.01"), D("0.01"), 1),
            ("EUR", "duplicate_billing", "0-1", 0, 1, D(0), D(0), D(0), D(0), 0),
            (
                *("JPY", "usage_without_billing", ">30", 1, 0),
                *(D(16155812057580869), D(16155812057580869), D(0), D(-16155812057580869), 51),
            ),
        ],
    ),
    (
        (
            "SELECT stream, hours, requests, refused, seconds_waited, runs, runs_published, doubt "
            "FROM reports.sync_health"
        ),
        [
            ("billing", 1, 0, 0, 0, 2, 1, "billing: PARTIAL"),
            ("usage", 1, 2, 1, 2, 2, 1, None),
        ],
    ),
    (
        (
            "SELECT section, what, currency, difference, verdict, says "
            "FROM reports.reconciliation_pack "
            "WHERE section IN ('completeness', 'close', 'total') ORDER BY line"
        ),
        [
            ("completeness", "billing", None, None, None, "billing: PARTIAL. in doubt"),
            ("completeness", "usage", None, None, None, "usage: COMPLETE"),
            (
                *("close", "close 1", None, None, "OUTDATED"),
                "3 records restated since sign-off, net +12.40",
            ),
            ("total", "EUR", "EUR", None, "tentative", "1 tentative"),
            ("total", "EUR", "EUR", D("0.01"), "out of balance", "1 balanced, 1 out of balance"),
            ("total", "JPY", "JPY", D(-16155812057580869), "out of balance", "1 out of balance"),
        ],
    ),
    (
        (
            "SELECT what, not_evaluated FROM reports.reconciliation_pack "
            "WHERE section = 'rule' ORDER BY line"
        ),
        [("amount_mismatch", None), ("quantity_mismatch", "usage.quantity is not mapped")],
    ),
    (
        "SELECT break_id FROM reports.reconciliation_pack WHERE section = 'break' ORDER BY line",
        [("Baaaaaaaaaaaa",), ("Bbbbbbbbbbbbb",)],
    ),
]


@pytest.mark.parametrize(("query", "rows"), FIGURES)
def test_every_figure_is_reconciliation_s_own(
    whole: duckdb.DuckDBPyConnection, query: str, rows: list[tuple[object, ...]]
) -> None:
    assert whole.execute(query).fetchall() == rows


@EVERY
def test_money_is_decimal_and_every_column_says_what_it_is(
    whole: duckdb.DuckDBPyConnection, report: Report
) -> None:
    found = whole.execute(
        "SELECT column_name, data_type, comment FROM duckdb_columns() "
        "WHERE schema_name = 'reports' AND table_name = ? ORDER BY column_index",
        [report.name],
    ).fetchall()
    assert [(name, text) for name, _kind, text in found] == [
        (name, column.text) for name, column in report.columns.items()
    ]
    kinds = {name: kind for name, kind, _text in found}
    assert {kinds[name].partition("(")[0] for name in report.money} <= {"DECIMAL"}
    assert "DOUBLE" not in kinds.values()
    assert report.question.endswith("?")


@EVERY
def test_totals_and_picture_never_mix_currencies_or_name_a_partner(
    whole: duckdb.DuckDBPyConnection, report: Report
) -> None:
    assert "currency" in report.grain or not report.money
    assert not {"partner", "partner_name", "says"} & set(report.grain)
    totals = whole.sql(report.totals)
    assert totals.columns[: len(report.grain)] == list(report.grain)
    assert report.chart is None or whole.sql(report.drawn).fetchall()
    assert report.chart is None or report.chart.panel == "currency" or not report.money


def test_what_was_not_evaluated_is_said(whole: duckdb.DuckDBPyConnection) -> None:
    told = whole.execute(
        "SELECT report, rows, not_evaluated FROM reports.contents ORDER BY report"
    ).fetchall()
    assert [name for name, _rows, _why in told] == [each.name for each in REPORTS]
    said = {name: why for name, _rows, why in told if why}
    assert said == {"reconciliation_pack": "quantity_mismatch: usage.quantity is not mapped"}


def test_without_reconciliation_every_report_has_a_row_that_says_so(tmp_path: Path) -> None:
    with made(tmp_path / "w.duckdb", META) as database:
        for report in REPORTS:
            rows = database.sql(f"SELECT not_evaluated FROM {report.table}").fetchall()
            evaluated = report.name == "sync_health"
            assert (rows == [(None,), (None,)]) == evaluated
            assert evaluated or "there is no reconciliation." in rows[0][0]
            assert database.sql(report.totals).fetchall()


def test_they_are_written_anew_in_each_publication_and_nothing_stays(tmp_path: Path) -> None:
    with made(tmp_path / "w.duckdb", META, RECONCILIATION) as database:
        database.execute("CREATE TABLE reports.of_before AS SELECT 1 AS one")
        database.execute("DELETE FROM reconciliation.breaks")
        database.begin()
        reports.write(database)
        database.commit()
        left = database.execute(
            "SELECT rows FROM reports.contents WHERE report = 'revenue_at_risk'"
        )
        assert left.fetchall() == [(0,)]
        names = database.execute(
            "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'reports' ORDER BY 1"
        ).fetchall()
    assert names == sorted([("contents",), *((each.name,) for each in REPORTS)])
