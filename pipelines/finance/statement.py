"""Writes statements for partners, and lists those that were written.

Here: from which figures a statement is made, and when it is a new one. Not here: what it says
(statements).
"""

import os
from datetime import date
from pathlib import Path
from typing import Final

from pipelines.core import stop
from pipelines.core.person import name_of
from pipelines.finance.reconcile.close_copy import digest_of
from pipelines.finance.statements.figures import Statement
from pipelines.finance.statements.identifiers import digests_of
from pipelines.finance.statements.issues import (
    Issue,
    IssuesOfMonth,
    all_issues,
    content_of,
    delete_with,
    stored_page,
    write_issue,
    write_list,
)
from pipelines.finance.statements.page import render_statement
from pipelines.finance.statements.pdf import NoPdf, find_browser, print_page
from pipelines.finance.statements.sources import read_statements
from pipelines.finance.statements.workbook import write_workbook
from pipelines.metadata.locks import hold_lock
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row

COLUMNS: Final = (
    "month", "connection", "partner", "name", "number", "source", "provisional", "written_at",
    "written_by", "files", "left_out", "problem",
)  # fmt: skip
UNCHANGED: Final = "The files of this statement are not those that were written: {}."


def write_statements(
    session: Stores, month: date, partner: str = "", *, with_pdf: bool = True
) -> list[Row]:
    """Write the statements of a month: of one partner (identifier or name), or of all (empty).

    Returns a row for each: `is_new` says whether it differs from the last one of that month; if
    not, nothing is written. Raises ConfigurationError for an unknown partner or month, and where
    usage is not compared with billing; PartnerSyncError.
    """
    browser = ""
    left_out = "not asked for"
    if with_pdf:
        try:
            browser = find_browser()
        except NoPdf as error:
            left_out = str(error)
    rows = []
    # `erase` holds the same lock: no statement is written while records are erased.
    with hold_lock(session.metadata.locks, "export"):
        written = IssuesOfMonth(session, month)
        for statement in read_statements(session, month, partner):
            stop.raise_if_requested()
            issue = _issue(session, statement, written)
            is_new = not issue.sha256
            _write(session, statement, issue, (browser, left_out))
            rows.append(_row(session, issue) | {"is_new": is_new})
        write_list(session)
    return rows


def list_statements(session: Stores, month: date | None = None, partner: str = "") -> list[Row]:
    """Return the statements that were written, newest first: of a month, or a partner, or all.

    `problem` says that files are missing or are not those that were written. Raises StorageFailed.
    """
    issues, unreadable = all_issues(session)
    rows = []
    for issue in issues:
        is_asked = month is None or issue.month == f"{month:%Y-%m}"
        if is_asked and partner in ("", issue.partner, issue.name):
            rows.append(_row(session, issue))
    for file, why in unreadable.items():
        rows.append(dict.fromkeys(COLUMNS) | {"problem": f"{file} cannot be read: {why}"})
    return rows


def erase_statements(session: Stores, text: str) -> list[Path]:
    """Delete the statements that show an identifier; return the files that are gone.

    The caller holds the lock `export`. Raises StorageFailed.
    """
    return delete_with(session, text)


def _row(session: Stores, issue: Issue) -> Row:
    """Return a statement as it is listed. Reads its files whole."""
    folder = session.home.statements / issue.month
    store = session.warehouse.store
    changed = []
    for name, digest in issue.sha256.items():
        if digest_of(store.get(folder / name)) != digest:
            changed.append(name)
    row = {name: getattr(issue, name) for name in COLUMNS if hasattr(issue, name)}
    return row | {
        "provisional": list(issue.provisional),
        "files": [str(folder / name) for name in issue.sha256],
        "sha256": dict(issue.sha256),
        "problem": UNCHANGED.format(", ".join(changed)) if changed else None,
    }


def _issue(session: Stores, statement: Statement, written: IssuesOfMonth) -> Issue:
    """Return the last statement of a partner if it says the same, else a new one without files."""
    last = written.last(statement)
    content = content_of(statement)
    if last is not None and last.content == content:
        return last
    return Issue(
        month=f"{statement.month:%Y-%m}",
        connection=statement.connection,
        partner=statement.partner,
        name=statement.name,
        number=written.next_number(statement),
        source=statement.source.name,
        version=statement.source.version,
        as_of=statement.source.as_of,
        written_at=session.clock.utc_now(),
        written_by=name_of(os.getuid()),
        sha256={},
        provisional=list(statement.provisional),
        content=content,
        shown=digests_of(statement),
    )


def _write(session: Stores, statement: Statement, issue: Issue, printer: tuple[str, str]) -> None:
    """Write what a statement lacks: all files of a new one, or a PDF that was left out.

    `printer`: the browser; if it is empty, why there is none.
    """
    browser, left_out = printer
    contents = {}
    if issue.sha256:
        page = stored_page(session, issue)
    else:
        page = render_statement(statement)
        contents = {"html": page.encode(), "xlsx": write_workbook(statement)}
        issue.left_out = left_out
    if browser and page and not any(name.endswith(".pdf") for name in issue.sha256):
        try:
            contents["pdf"] = print_page(browser, page)
            issue.left_out = ""
        except NoPdf as error:
            issue.left_out = str(error)
    if contents:
        write_issue(session, issue, contents)
