"""Months that are closed: who may, what is copied, and what changes of them become."""

import hashlib
import json
import os
import stat
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.app.checkup import run_checks
from pipelines.app.maintenance import verify_files
from pipelines.app.nightly import build_with_books, rebuild_with_books
from pipelines.app.session import AppSession
from pipelines.core.errors import ConfigurationError
from pipelines.core.files import write_durably
from pipelines.core.finding import Finding
from pipelines.core.person import login_id
from pipelines.finance.close import close_month, list_closes, reopen_month
from pipelines.finance.reconcile.close_copy import FORMAT
from tests.reconcile.books import FIRST, MAPPING, bill, decide, line, partners, publish, used
from tests.reconcile.months import (
    BILLS,
    OCTOBER,
    POSTED,
    SEPTEMBER,
    SERVICE,
    TERMS,
    USAGE,
    Signed,
    close,
    restate,
    signing,
)
from tests.reports.conftest import page_text
from tests.versions.homes import Stores
from tests.versions.named import erase

STATES = """
SELECT strftime(month, '%m'), number, state, changed_records, net_difference
FROM reconciliation.closes ORDER BY ALL
"""


def changed_months(session: AppSession) -> tuple[Finding, ...]:
    found = {each.check.code: each for each in run_checks(session)}
    return found["closed_month_changed"].findings


def assign(stores: Stores) -> None:
    ((break_id, *_),) = stores.rows("SELECT break_id FROM reconciliation.breaks LIMIT 1")
    decide(stores, "break_assign", break_id, owner="bob")


def add_beta(stores: Stores) -> None:
    stores.configure("beta", **SERVICE)


def map_otherwise(stores: Stores) -> None:
    build_with_books(stores)
    write_durably(stores.home.mapping_file, MAPPING.encode())


READ = "partners of acme was read at 2026-11-02 02:00 UTC, before 2026-11-03 00:00 UTC"
PART = partial(publish, mapping=TERMS, complete=False, billing=BILLS)
NO_PARTNER = "[usage]\nid = 'id'"
NEWER = "the books of version 2 lack newer data, decisions, closes or mapping"
# One after the other: what is done before, and why the month is not closed then.
REFUSALS: list[tuple[Signed, Callable[[Stores], object], str]] = [
    (signing(reviewer=" ANN "), repr, "must be two people"),
    (signing(reviewer=" "), repr, "must be two people"),
    (signing(date(2026, 11, 1)), repr, "it ends at 2026-12-03 00:00 UTC, with"),
    (signing(date(9999, 12, 1)), repr, "it has not begun"),
    (signing(OCTOBER), repr, READ),
    (signing(date(2026, 8, 1)), repr, "has no record of it"),
    (signing(), add_beta, "billing of beta is not loaded"),
    (signing(), PART, "billing of acme is not proven complete"),
    (signing(), assign, NEWER),
    (signing(), map_otherwise, NEWER),
    (signing(), partial(publish, mapping=NO_PARTNER), "usage.partner is not mapped"),
]


@pytest.mark.long
def test_a_month_is_not_closed(books: Stores) -> None:
    for by, prepare, why in REFUSALS:
        prepare(books)
        named = f"{by[0]:%Y-%m} cannot be closed: .*{why}.* Nothing was written"
        with pytest.raises(ConfigurationError, match=named) as error:
            close_month(books, *by)
        assert error.value.remedy
    assert not books.home.closes.exists()
    assert list_closes(books) == []


def test_the_copy_of_a_month_is_whole_and_private(closed: Stores) -> None:
    folder = closed.home.closes / "2026-09" / "001"
    files = {file.name: file for file in folder.iterdir()}
    digests = {name: hashlib.sha256(files[name].read_bytes()).hexdigest() for name in files}
    sealed = digests.pop("manifest.json")
    manifest = json.loads(files["manifest.json"].read_text())
    assert manifest.pop("sha256") == digests
    assert manifest.pop("scans")["acme/usage"] == "usage-1103"
    assert (manifest.pop("previous"), manifest.pop("sums").keys()) == (None, SIGNED_ROWS.keys())
    expected: dict[str, Any] = {
        "format": FORMAT,
        "month": "2026-09",
        "number": 1,
        "preparer": "ann",
        "reviewer": "bob",
    }
    expected |= {"note": "as agreed", "version": 1, "as_of": "2026-11-02 02:01:00+00"}
    expected |= {"approval": "declared", "accept_open": None, "preparer_uid": os.getuid()}
    expected |= {"preparer_login": login_id(), "preparer_role": None}
    expected |= {"chosen_connections": None, "connections": ["acme"], "ledger": []}
    assert manifest == expected | {"closed_at": "2026-11-04T02:00:00+00:00"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files.values()} == {0o400}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert files["mapping.toml"].read_text() == TERMS
    origin = f"SELECT id, _scan_id, _page, _row FROM '{files['used.parquet']}' ORDER BY id"
    assert duckdb.sql(origin).fetchall() == [("u", "usage-1103", 1, 0), ("w", "usage-1103", 1, 1)]
    (row,) = list_closes(closed)
    assert (row["state"], row["manifest_sha256"], row["problem"]) == ("closed", sealed, None)
    assert closed.rows(STATES) == [("09", 1, "closed", 0, None)]
    assert closed.rows(POSTED) == []
    assert "2026-09 is closed already: ann and bob closed it" in close_month(closed, *signing())
    assert len(list_closes(closed)) == 1
    with pytest.raises(ConfigurationError, match="ann and bob closed it at 2026-11-04 02:00 UTC"):
        close_month(closed, *signing(preparer="eve"))


SIGNED_ROWS = {
    "used": 2,
    "billed": 1,
    "summary": 2,
    "fees": 0,
    "breaks": 2,
    "break_rows": 3,
    "decisions": 0,
    "matches": 2,
    "opening": 0,
    "corrections": 0,
    "rollforward": 2,
    "open_items": 2,
}


def test_a_copy_has_rows_sums_and_no_name_of_a_partner(closed: Stores) -> None:
    folder = closed.home.closes / "2026-09" / "001"
    sums = json.loads((folder / "manifest.json").read_text())["sums"]
    assert {row["currency"]: row["amount"] for row in sums["used"]} == {
        "EUR": "5.00",
        "USD": "7.00",
    }
    for name, rows in SIGNED_ROWS.items():
        found = duckdb.sql(f"FROM '{folder / name}.parquet'").fetchall()
        assert len(found) == sum(row["rows"] for row in sums[name]) == rows
        assert "first Ltd" not in {value for row in found for value in row}
    others = {"manifest.json", "mapping.toml", "previous.json", "verify.py"}
    others |= {"2026-09.xlsx", "report.html"}
    assert {file.name for file in folder.iterdir()} == {
        *others,
        *(f"{name}.parquet" for name in SIGNED_ROWS),
    }


@pytest.mark.long
def test_what_changes_after_the_close_is_posted_once(closed: Stores) -> None:
    restate(closed, "6.00", "7.50", billing=[bill("b", line("u", "5.01"), status="void")])
    first = [
        ("usage", "u", "EUR", "5.00", "6.00", "1.00", "10"),
        ("usage", "w", "USD", "7.00", "7.50", "0.50", "10"),
        ("billing", "b#0", "EUR", "5.01", None, "-5.01", "10"),
    ]
    assert sorted(closed.rows(POSTED)) == sorted(first)
    net = "usage EUR +1.00, usage USD +0.50, billing EUR -5.01"
    assert closed.rows(STATES) == [("09", 1, "outdated", 3, net)]

    publish(closed, mapping=TERMS, partners=partners([FIRST]), billing=BILLS)
    back = ("billing", "b#0", "EUR", "0.00", "5.01", "5.01", "10")
    assert closed.rows(POSTED)[3:] == [back]  # nothing is posted twice
    close(closed, OCTOBER)
    taken = closed.home.closes / "2026-10" / "001" / "corrections.parquet"
    assert duckdb.sql(f"SELECT count(*) FROM '{taken}'").fetchall() == [(4,)]

    restate(closed, "6.25", "7.50")  # the rest, and to the month that is open now
    rest = ("usage", "u", "EUR", "6.00", "6.25", "0.25", "11")
    assert closed.rows(POSTED)[4:] == [rest]

    restate(closed, "5.00", "7.50")
    undone = ("usage", "u", "EUR", "6.25", "5.00", "-1.25", "11")
    assert closed.rows(POSTED)[5:] == [undone]
    assert closed.rows(STATES) == [
        ("09", 1, "outdated", 1, "usage USD +0.50"),
        ("10", 1, "closed", 0, None),
    ]

    # Compared by the mapping of the close: another one changes nothing about it.
    changed = TERMS.replace('amount = "amount"', 'amount = "quantity"', 1)
    write_durably(closed.home.mapping_file, changed.encode())
    posted, states = closed.rows(POSTED), closed.rows(STATES)
    rebuild_with_books(closed)
    assert closed.rows("SELECT sum(used_amount)::INTEGER FROM reconciliation.summary") == [(4,)]
    assert (closed.rows(POSTED), closed.rows(STATES)) == (posted, states)


@pytest.mark.long
def test_a_record_of_a_closed_month_that_is_erased_has_no_name_in_later_versions(
    closed: Stores,
) -> None:
    assert erase(closed, "u")
    for usage in (USAGE[1:], [used("w", "8.00", currency="USD"), *USAGE[2:]], USAGE):
        publish(closed, usage=usage, billing=[])
        corrections = closed.rows("SELECT side, id, amount_now FROM reconciliation.corrections")
        assert ("usage", "[erased]", None) in corrections
        assert "u" not in {row[1] for row in corrections}


@pytest.mark.long
def test_a_reopened_month_takes_its_postings_back(closed: Stores) -> None:
    restate(closed, "6.00", "7.00")
    (found,) = changed_months(closed)
    assert (found.severity, found.subject) == ("warning", "2026-09")
    assert "2026-09 is not as it was signed off: 1 record changed since. Net" in found.message
    assert "Net difference: usage EUR +1.00." in found.message
    assert found.remedy == "partner-sync close list"
    page = page_text(closed)
    said = "1 of them changed since. Net change of the difference: Sep 2026 EUR&nbsp;\u22121.00."
    assert said in page
    assert "Sep 2026 signed off 04 Nov 2026, 1 record changed since" in page
    row = "not verified 1 Oct 2026 used +1.00 billed, net of credit notes 0.00"
    assert row in page
    with pytest.raises(ConfigurationError, match="2026-10 cannot be reopened: it is not closed"):
        reopen_month(closed, OCTOBER, "cid", "new invoice")
    reopen_month(closed, SEPTEMBER, "cid", "new invoice")
    assert changed_months(closed) == ()
    build_with_books(closed)
    assert closed.rows(STATES) == [("09", 1, "reopened", 0, None)]
    assert [row[5] for row in closed.rows(POSTED)] == ["1.00", "-1.00"]
    close_month(closed, *signing())
    known = [(row["number"], row["reopened_by"]) for row in list_closes(closed)]
    assert known == [(1, "cid"), (2, None)]
    restate(closed, "6.50", "7.00")  # against the second copy alone
    assert [row[3:] for row in closed.rows(POSTED)[2:]] == [("6.00", "6.50", "0.50", "10")]
    states = [(1, "reopened", 0, None), (2, "outdated", 1, "usage EUR +0.50")]
    assert [row[1:] for row in closed.rows(STATES)] == states


@pytest.mark.long
@pytest.mark.parametrize("spoil", [Path.touch, Path.mkdir])  # a folder cannot be read
def test_a_damaged_copy_is_reported_and_holds_nothing_back(closed: Stores, spoil: Any) -> None:
    file = closed.home.closes / "2026-09" / "001" / "used.parquet"
    file.unlink()
    spoil(file)
    restate(closed, "6.00", "7.00")
    reasons = dict(closed.rows("SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated"))
    assert reasons.keys() == {"corrections", "closes", "read_otherwise", "flux", "receivables"}
    assert f"2026-09 is damaged: {file} is missing, was" in reasons["closes"]
    assert closed.rows("SELECT amount::VARCHAR FROM current.usage WHERE id = 'u'") == [("6.00",)]
    assert reasons["closes"] in list_closes(closed)[0]["problem"]
    checks = {each.check.code: each for each in run_checks(closed)}
    assert reasons["closes"] in checks["closed_month_changed"].reason  # never shown as passed
    (found,) = verify_files(closed)["damaged"]
    assert found["message"] == reasons["closes"]


def test_a_change_of_quantity_alone_makes_a_close_outdated(closed: Stores) -> None:
    records = [{**USAGE[0], "quantity": 2}, *USAGE[1:]]
    publish(closed, mapping=TERMS, usage=records)
    assert closed.rows(STATES)[0][:4] == ("09", 1, "outdated", 1)
