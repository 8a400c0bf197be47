"""Writes the finance report of the published books into the home, and a list of all reports."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Final

import duckdb
from sqlalchemy import select

from pipelines.core.errors import PartnerSyncError, StorageFailed
from pipelines.core.files import private_folder, share, storing
from pipelines.core.text import printable
from pipelines.finance.closing.accrual import (
    read_accrual,
    read_accrued_months,
    read_written_accrual,
    read_written_months,
)
from pipelines.finance.closing.sign_off import read_open_breaks
from pipelines.finance.inputs import copy_folder
from pipelines.finance.mapping import parse_mapping
from pipelines.finance.reconcile.close_copy import MANIFEST
from pipelines.finance.reconciled import MAPPING, open_books, read_age, require_books
from pipelines.finance.reports.accrual import Accrual
from pipelines.finance.reports.details import read_details
from pipelines.finance.reports.prepared import Prepared
from pipelines.finance.reports.queries import EARLIER, Figures, read_figures
from pipelines.finance.reports.render import Beside, PastReport, render_index, render_page
from pipelines.finance.reports.told import told_by
from pipelines.finance.reports.verdicts import judge as judge  # noqa: PLC0414 - for `report`
from pipelines.finance.statement_pages import StatementPages, read_index
from pipelines.metadata.tables import Close
from pipelines.versions.stores import Stores
from pipelines.versions.version_scans import previous_versions
from pipelines.warehouse.books import Books, BooksFolder
from pipelines.warehouse.duckdb_file import DAMAGED, Row
from pipelines.warehouse.memory_limit import is_memory_refused
from pipelines.warehouse.version_files import Version

# A month that is closed for some connections is open as a whole.
STANDING_COPY: Final = """
SELECT closes.number
FROM reconciliation.closes AS closes
WHERE closes.month = $month AND closes.connections IS NULL
    AND closes.state IN ('closed', 'outdated')
"""
EARLIER_COPIES: Final = """
SELECT closes.month, closes.number
FROM reconciliation.closes AS closes
WHERE closes.month < $month AND closes.connections IS NULL
    AND closes.state IN ('closed', 'outdated')
ORDER BY closes.month DESC
"""
NAME: Final = re.compile(r"v(\d{8,})\.html")


Prepare = Callable[[duckdb.DuckDBPyConnection], None]
"""What is done to open books before they are read."""


def _keep_names(_db: duckdb.DuckDBPyConnection) -> None:
    """Do nothing: books are read as they are."""


def read_figures_of_books(
    stores: Stores, *, prepare: Prepare = _keep_names, with_details: bool = False
) -> Figures:
    """Return the figures of the published books, and what they were earlier.

    Earlier are the books of the newest version with older data, and those of the last close.
    `prepare` is done to each of these books, such as to hide names. With details, they have the
    lists that the page shows by clicking. Raises PartnerSyncError.
    """
    require_books(stores)
    folder = BooksFolder(stores.warehouse)
    try:
        with open_books(stores) as (version, db):
            prepare(db)
            previous = _read_previous(stores, folder, version, prepare)
            figures = read_figures(db, version.number, previous=previous)
            accrual = _read_accrual(stores, db, figures)
            figures = replace(
                figures,
                accrual=accrual,
                prepared=_read_prepared(stores),
                open_when_signed=_read_open_when_signed(stores, figures),
                fee_reasons=_read_fee_reasons(db, figures),
            )
            if with_details:
                statements = read_index(stores)
                figures = replace(figures, told=told_by(statements))
                find = StatementPages(stores).find
                details = read_details(db, figures, find, statements)
                figures = replace(figures, details=details)
            figures = replace(figures, doubts=[*read_age(stores), *figures.doubts])
    except duckdb.Error as error:
        if is_memory_refused(error):
            raise  # which `open_session` explains
        raise StorageFailed(
            f"The report cannot be made: {printable(error)}.",
            f"Run `partner-sync verify`. If the file is damaged: {DAMAGED}",
        ) from error
    return replace(figures, closed=_read_closed(folder, figures, prepare))


def _read_prepared(stores: Stores) -> tuple[Prepared, ...]:
    """Return the months that wait for the approval of another user, the earliest first."""
    query = select(Close).where(Close.state == "prepared").order_by(Close.month)
    prepared = []
    with stores.metadata.transaction() as rows:
        for close in rows.scalars(query):
            names = close.connections
            chosen = tuple(names) if names else None
            prepared.append(
                Prepared(close.month, close.number, close.preparer, close.closed_at, chosen)
            )
    return tuple(prepared)


def _read_open_when_signed(stores: Stores, figures: Figures) -> dict[tuple[date, int], str]:
    """Return which breaks were open when months were signed; none of a copy that is not there."""
    found = {}
    for signed in figures.tables["signed_months"]:
        month, number = signed["month"], signed["number"]
        with suppress(PartnerSyncError, OSError, duckdb.Error):
            found[month, number] = read_open_breaks(copy_folder(stores, month, number), signed)
    return found


def _read_fee_reasons(db: duckdb.DuckDBPyConnection, figures: Figures) -> dict[str, str]:
    """Return why fees are accepted, by kind; none where nothing is compared."""
    if figures.problem:
        return {}
    ((mapping,),) = db.execute(MAPPING).fetchall()
    return {kind: why for kind, why in parse_mapping(mapping).fee_reasons().items() if why}


def _read_accrual(
    stores: Stores, db: duckdb.DuckDBPyConnection, figures: Figures
) -> Accrual | None:
    """Return what the newest month that is over accrues; None where nothing is compared."""
    if figures.problem:
        return None
    with suppress(duckdb.CatalogException):  # a table of it could not be evaluated
        (month,) = [row["month"] for row in figures.tables["places"] if row["place"] == 1]
        ((mapping,),) = db.execute(MAPPING).fetchall()
        accounts = parse_mapping(mapping).accounts
        copies = db.execute(STANDING_COPY, {"month": month}).fetchall()
        copy = copies[0][0] if copies else None
        written = _read_written(stores, month, copy) if copy else None
        if written is not None:
            months = _read_months(stores, month, copies[0][0])
            return Accrual(accounts, month, written, copy, is_written=True, months=months)
        today = Accrual(accounts, month, read_accrual(db, month), copy, is_written=False)
        today = replace(today, months=read_accrued_months(db))
        return _with_reversed(stores, db, today)
    return None


def _with_reversed(stores: Stores, db: duckdb.DuckDBPyConnection, accrual: Accrual) -> Accrual:
    """Return an accrual of today with that of the last journal that was written before."""
    for month, copy in db.execute(EARLIER_COPIES, {"month": accrual.month}).fetchall():
        rows = _read_written(stores, month, copy)
        if rows is not None:
            return replace(accrual, reversed_month=month, reversed_rows=rows)
    return accrual


def _read_written(stores: Stores, month: date, copy: int) -> list[Row] | None:
    """Return what the journal of a copy accrues; None without one, or if it cannot be read."""
    with suppress(PartnerSyncError, OSError, duckdb.Error):
        return read_written_accrual(copy_folder(stores, month, copy))
    return None


def _read_months(stores: Stores, month: date, copy: int) -> list[Row]:
    """Return from which months that is what the journal of a copy accrues; none if unknown."""
    with suppress(PartnerSyncError, OSError, duckdb.Error):
        return read_written_months(copy_folder(stores, month, copy))
    return []


def current_page(stores: Stores) -> Path | None:
    """Return the page of the published books; None if it is older than them or their version."""
    version = require_books(stores)
    books = BooksFolder(stores.warehouse).published()
    page = _page_of(stores, version.number)
    shown = [stores.warehouse.require_published().path]
    if books is not None:
        shown.append(books.path)
    try:
        written_at = page.stat().st_mtime
        is_current = all(file.stat().st_mtime <= written_at for file in shown)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return page if is_current else None


def _page_of(stores: Stores, version: int) -> Path:
    return stores.home.reports / f"v{version:08}.html"


def write_report(stores: Stores, figures: Figures) -> Path:
    """Write the page of a version, then the list of reports; return the page's file."""
    folder = private_folder(stores.home.reports)
    store = stores.warehouse.store
    file = _page_of(stores, figures.version)
    with storing(file, "`partner-sync report`"):
        has_statements = bool(store.list(stores.home.statements, "index.html"))
        beside = Beside(has_statements, _files_of_copies(stores, figures))
        store.write(file, render_page(figures, beside).encode())
        reports = []
        for page, kept in store.list(folder, "v*.html").items():
            name = NAME.fullmatch(page.name)
            if name:
                reports.append(PastReport(int(name[1]), page.name, kept.written_at))
        store.write(folder / "index.html", render_index(sorted(reports, reverse=True)).encode())
        for shared in (folder, file, folder / "index.html"):
            share(shared, stores.settings.readers)
    return file


def _files_of_copies(stores: Stores, figures: Figures) -> dict[tuple[date, int], dict[str, str]]:
    """Return files of the copies of signed months that are on this machine, for links."""
    closes = stores.home.closes
    copies = {}
    for row in figures.tables["signed_months"]:
        month = f"{row['month']:%Y-%m}"
        folder = closes / month / f"{row['number']:03}"
        names = {
            "working paper": f"{month}.xlsx", "journal": "journal.csv", "manifest": MANIFEST,
        }  # fmt: skip
        files = {
            shown: f"../{closes.name}/{month}/{folder.name}/{name}"
            for shown, name in names.items()
            if (folder / name).is_file()
        }
        if files:
            copies[row["month"], row["number"]] = files
    return copies


def _read_previous(
    stores: Stores, folder: BooksFolder, version: Version, prepare: Prepare
) -> Figures | None:
    """Return the amounts of the newest books with older data that can be read."""
    for earlier in previous_versions(stores, version):
        books = folder.newest_of(earlier.number)
        figures = _read_amounts(books, folder.open(books), prepare) if books else None
        if figures is not None:
            return figures
    return None


def _read_closed(folder: BooksFolder, figures: Figures, prepare: Prepare) -> Figures | None:
    """Return the amounts of the books of the last close; None if they cannot be read."""
    for last_close in figures.tables["last_close"]:
        books = folder.newest_of(last_close["version"])
        if books:
            # Its version may be gone: amounts are in the books alone.
            return _read_amounts(books, folder.open_alone(books), prepare)
    return None


def _read_amounts(
    books: Books, opened: AbstractContextManager[duckdb.DuckDBPyConnection], prepare: Prepare
) -> Figures | None:
    """Return the amounts of books; None if they have none or cannot be read."""
    with suppress(PartnerSyncError, duckdb.Error), opened as db:
        prepare(db)
        figures = read_figures(db, books.version, EARLIER)
        return None if figures.problem else figures
    return None
