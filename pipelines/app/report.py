"""Writes the finance report of the published version into the home, and a list of all reports."""

import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.app.session import AppSession
from pipelines.core.doubt import Doubt
from pipelines.core.errors import PartnerSyncError, StorageFailed
from pipelines.core.files import private_folder, storing, write_durably
from pipelines.core.text import printable
from pipelines.publish.versions import previous_versions
from pipelines.reports.queries import EARLIER, Figures, read_figures
from pipelines.reports.render import PastReport, render_index, render_report
from pipelines.warehouse.duckdb_file import DAMAGED
from pipelines.warehouse.memory import is_refused

NAME: Final = re.compile(r"v(\d{8,})\.html")


def read_published(session: AppSession) -> Figures:
    """Return the figures of the published version, and what they were earlier.

    Earlier is the newest version with older data that has figures, and the last close while its
    version is kept.

    Raises PartnerSyncError.
    """
    version = session.warehouse.require_published()
    number = version.number
    try:
        older = previous_versions(session, version)
        found = (_read_earlier(session, each.number) for each in older)
        previous = next(filter(None, found), None)
        with session.warehouse.open(number) as db:
            figures = read_figures(db, number, previous=previous)
    except duckdb.Error as error:
        if is_refused(error):
            raise  # which `open_session` explains
        raise StorageFailed(
            f"The report of version {number} cannot be made: {printable(error)}.",
            f"Run `partner-sync verify`. If the file is damaged: {DAMAGED}",
        ) from error
    closes = (_read_earlier(session, each["version"]) for each in figures.tables["last_close"])
    return replace(figures, closed=next(closes, None))


def write_report(session: AppSession, figures: Figures) -> Path:
    """Write the page of a version, then the list of reports; return the page's file."""
    folder = private_folder(session.home.reports)
    file = folder / f"v{figures.version:08}.html"
    with storing(file, "`partner-sync report`"):
        write_durably(file, render_report(figures).encode())
        reports = [
            PastReport(int(name[1]), each.name, datetime.fromtimestamp(each.stat().st_mtime, UTC))
            for each in folder.iterdir()
            if (name := NAME.fullmatch(each.name))
        ]
        write_durably(folder / "index.html", render_index(sorted(reports, reverse=True)).encode())
    return file


def key_figures(figures: Figures) -> list[dict[str, Any]]:
    """Return the totals of each currency; empty where usage is not compared with billing."""
    previous = figures.previous
    return [
        {
            "currency": row["currency"],
            "used": row["used"],
            "billed": row["billed"],
            "credit_notes": row["credited"],
            "difference": row["difference"],
            "change": previous.change(row) if previous else None,
            "open_breaks": row["open_breaks"],
        }
        for row in figures.tables["currencies"]
    ]


def not_known(figures: Figures) -> list[Doubt]:
    """Return why nobody can say that there are no other breaks; none where nothing is compared."""
    return [] if figures.problem else figures.doubts


def _read_earlier(session: AppSession, number: int) -> Figures | None:
    """Return the amounts of a version; None if it has none or cannot be read."""
    with suppress(PartnerSyncError, duckdb.Error), session.warehouse.open(number) as db:
        figures = read_figures(db, number, EARLIER)
        return None if figures.problem else figures
    return None
