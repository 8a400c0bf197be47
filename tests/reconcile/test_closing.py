"""Closing a month: a copy that cannot be written, and the commands."""

import errno
import os

import duckdb
import pytest
from sqlalchemy import delete

from pipelines.core.errors import PartnerSyncError, StorageFailed
from pipelines.finance.books import make_books
from pipelines.finance.close import close_month, list_closes
from pipelines.metadata.tables import Close
from tests.cli.conftest import Cli
from tests.reconcile.books import decide, publish
from tests.reconcile.months import BILLS, TERMS, signing
from tests.versions.homes import Stores


@pytest.mark.long
def test_a_copy_that_cannot_be_written_leaves_nothing(
    books: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = books.home.closes / "2026-09"
    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", refuse)
        with pytest.raises(StorageFailed, match="No space left on device"):
            close_month(books, *signing())
    assert list(folder.iterdir()) == []
    assert list_closes(books) == []
    (folder / ".001.part").mkdir()  # as a killed process leaves it
    (folder / ".001.part" / "used.parquet").touch(0o400)
    close_month(books, *signing())
    assert [each.name for each in folder.iterdir()] == ["001"]


@pytest.mark.long
def test_a_close_after_a_killed_one_copies_what_is_published_then(books: Stores) -> None:
    close_month(books, *signing())
    with books.metadata.transaction() as rows:  # as a kill between copy and row leaves it
        rows.execute(delete(Close))
    for (name,) in books.rows("SELECT break_id FROM reconciliation.breaks"):
        decide(books, "break_resolve", name)
    make_books(books)
    assert "No break of it is open" in close_month(books, *signing())
    (row,) = list_closes(books)
    assert row["number"] == 2
    copy = books.home.closes / "2026-09" / "002"
    states = duckdb.sql(f"SELECT DISTINCT state FROM '{copy}/breaks.parquet'").fetchall()
    assert states == [("resolved",)]


@pytest.mark.long
def test_records_in_quarantine_are_named(books: Stores) -> None:
    publish(books, mapping=TERMS, billing=[*BILLS, {"id": None}])
    assert "in quarantine, which amounts may lack: 1." in close_month(books, *signing())


@pytest.mark.long
def test_a_held_scan_is_decided_about_before_the_month_is_closed(books: Stores) -> None:
    """The rows of billing that are published are complete; a newer scan shows none of them."""
    publish(books, mapping=TERMS, billing=[])
    cli = Cli(books.home)
    prepared = cli.json("close", "prepare", "2026-09", "--check", code=3)
    (refusal,) = prepared["refusals"]
    assert "the scan of billing of acme that began at" in refusal["message"]
    assert "waits for approval: " in refusal["message"]
    assert "`partner-sync approve acme billing" in refusal["remedy"]
    with pytest.raises(PartnerSyncError, match="waits for approval"):
        close_month(books, *signing())
    cli("approve", "acme", "billing", "--reason", "r", "--reject")
    assert cli.json("close", "prepare", "2026-09", "--check")["refusals"] == []


@pytest.mark.long
def test_commands_close_list_and_reopen(books: Stores) -> None:
    cli = Cli(books.home)
    month = ("close", "month", "2026-09", "--preparer", "ann")
    prepared = " ".join(cli("close", "prepare", "2026-09", "--check").stdout.split())
    assert (
        "rests on one chain of pages of acme/billing, acme/partners, acme/usage: it is" in prepared
    )
    assert "passes = 2" in prepared
    assert "2026-09 can be closed" in prepared
    refused = cli(*month, "--reviewer", "Ann", code=2)
    assert "Name them: --preparer and --reviewer." in refused.stderr
    done = cli(*month, "--reviewer", "bob", "--note", "n")
    assert "2026-09 is closed as published in version 1." in done.stdout
    assert "Still open: 1 break of EUR" in done.stdout
    prepared = cli.json("close", "prepare", "2026-09", "--check", code=3)
    assert "ann and bob closed it at" in prepared["refusals"][0]["message"]
    (row,) = cli.json("close", "list")
    assert (row["month"], row["note"], row["state"]) == ("2026-09", "n", "closed")
    assert row["problem"] is None
    reopened = cli("close", "reopen", "2026-09", "--reason", "r")
    assert "is open again" in reopened.stdout
    assert "reopened" in cli("close", "list").stdout
