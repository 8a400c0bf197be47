"""Writes the finance report of the published books into the home, and a list of all reports."""

import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import duckdb

from pipelines.core.errors import PartnerSyncError, StorageFailed
from pipelines.core.files import private_folder, storing, write_durably
from pipelines.core.text import printable
from pipelines.finance.reconciled import open_books, read_age, require_books
from pipelines.finance.reports.queries import EARLIER, Figures, read_figures
from pipelines.finance.reports.render import PastReport, render_index, render_report
from pipelines.finance.reports.verdicts import judge as judge  # noqa: PLC0414 - for `report`
from pipelines.publish.stores import Stores
from pipelines.publish.version_scans import previous_versions
from pipelines.warehouse.books import Books, BooksFolder
from pipelines.warehouse.duckdb_file import DAMAGED
from pipelines.warehouse.memory_limit import is_memory_refused

NAME: Final = re.compile(r"v(\d{8,})\.html")


def read_published(session: Stores) -> Figures:
    """Return the figures of the published books, and what they were earlier.

    Earlier are the books of the newest version with older data, and those of the last close.
    Raises PartnerSyncError.
    """
    require_books(session)
    folder = BooksFolder(session.warehouse)
    try:
        with open_books(session) as (version, db):
            number = version.number
            older = (folder.newest_of(each.number) for each in previous_versions(session, version))
            found = (_read_earlier(folder, each) for each in older if each)
            previous = next(filter(None, found), None)
            figures = read_figures(db, number, previous=previous)
            figures = replace(figures, doubts=[*read_age(session), *figures.doubts])
    except duckdb.Error as error:
        if is_memory_refused(error):
            raise  # which `open_session` explains
        raise StorageFailed(
            f"The report cannot be made: {printable(error)}.",
            f"Run `partner-sync verify`. If the file is damaged: {DAMAGED}",
        ) from error
    closed = (folder.newest_of(each["version"]) for each in figures.tables["last_close"])
    closes = (_read_earlier(folder, each, alone=True) for each in closed if each)
    return replace(figures, closed=next(closes, None))


def current_page(session: Stores) -> Path | None:
    """Return the page of the published books; None if it is older than them or their version."""
    version = require_books(session)
    books = BooksFolder(session.warehouse).published()
    page = _page_of(session, version.number)
    shown = [session.warehouse.require_published().path, *([books.path] if books else [])]
    try:
        written_at = page.stat().st_mtime
        return page if all(each.stat().st_mtime <= written_at for each in shown) else None
    except FileNotFoundError:
        return None


def _page_of(session: Stores, version: int) -> Path:
    return session.home.reports / f"v{version:08}.html"


def write_report(session: Stores, figures: Figures) -> Path:
    """Write the page of a version, then the list of reports; return the page's file."""
    folder = private_folder(session.home.reports)
    file = _page_of(session, figures.version)
    with storing(file, "`partner-sync report`"):
        write_durably(file, render_report(figures).encode())
        reports = [
            PastReport(int(name[1]), each.name, datetime.fromtimestamp(each.stat().st_mtime, UTC))
            for each in folder.iterdir()
            if (name := NAME.fullmatch(each.name))
        ]
        write_durably(folder / "index.html", render_index(sorted(reports, reverse=True)).encode())
    return file


def _read_earlier(folder: BooksFolder, books: Books, *, alone: bool = False) -> Figures | None:
    """Return the amounts of books; None if they have none or cannot be read."""
    opened = folder.open_alone(books) if alone else folder.open(books)
    with suppress(PartnerSyncError, duckdb.Error), opened as db:
        figures = read_figures(db, books.version, EARLIER)
        return None if figures.problem else figures
    return None
