"""Writes statements for partners, and lists those that were written.

Here: from which figures a statement is made, and when it is a new one. Not here: what it says
(statements).
"""

import os
from datetime import date
from pathlib import Path
from typing import Final

import msgspec

from pipelines.core import stop
from pipelines.core.errors import ConfigurationError
from pipelines.core.person import name_of
from pipelines.core.text import printable
from pipelines.finance.reconcile.close_copy import digest_of
from pipelines.finance.statements.figures import Statement
from pipelines.finance.statements.identifiers import digests_of
from pipelines.finance.statements.issues import (
    Issue,
    IssuesOfMonth,
    all_issues,
    content_of,
    delete_unfinished,
    delete_with,
    files_with,
    is_kept,
    lost,
    path_of,
    stored_page,
    unfinished,
    write_issue,
    write_list,
)
from pipelines.finance.statements.page import render_statement
from pipelines.finance.statements.pdf import NoPdf, find_browser, print_page
from pipelines.finance.statements.sent_notes import SentNotes
from pipelines.finance.statements.sources import never_loaded, read_statements
from pipelines.finance.statements.workbook import write_workbook
from pipelines.metadata.locks import hold_lock
from pipelines.versions.left_over import remove_left_over
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row

COLUMNS: Final = (
    "month", "connection", "partner", "name", "number", "source", "provisional", "written_at",
    "written_by", "sent", "files", "left_out", "problem",
)  # fmt: skip
UNCHANGED: Final = "The files of this statement are not those that were written: {}."
UNFINISHED: Final = (
    "{} belongs to no statement: the command that wrote it was killed, or is still running. The "
    "next `partner-sync statement` deletes it."
)
LOST: Final = (
    "{} is missing: nobody knows what its statement said. The other files of this statement stay. "
    "Restore it from a backup."
)
NEVER_LOADED: Final = (
    "Connection {0} was never loaded: its partners have no statement. Run `partner-sync sync -c "
    "{0}`."
)


def write_statements(
    stores: Stores,
    month: date,
    partner: str = "",
    connection: str = "",
    *,
    with_pdf: bool = True,
) -> list[Row]:
    """Write the statements of a month: of one partner (identifier or name), or of all (empty).

    `connection`: of this one; of all (empty). Returns a row for each: `is_new` says whether it
    differs from the last one of that month; if not, nothing is written. Of all, a connection that
    was never loaded has a row with its `problem` only. Raises ConfigurationError for an unknown
    partner, month or connection, and where usage is not compared with billing; PartnerSyncError.
    """
    browser = ""
    left_out = "not asked for"
    if with_pdf:
        try:
            browser = find_browser()
            left_out = "the command was stopped before it was printed"
        except NoPdf as error:
            left_out = str(error)
    issues = _write_all(stores, (month, partner, connection), left_out)
    if browser:
        for issue, _is_new in issues:
            _add_pdf(stores, issue, browser)
        with hold_lock(stores.metadata.locks, "export"):
            write_list(stores)
    notes = SentNotes(stores)
    rows = [_row(stores, issue, notes) | {"is_new": is_new} for issue, is_new in issues]
    if not partner and not connection:
        rows += [_problem(NEVER_LOADED.format(name)) for name in never_loaded(stores)]
    return rows


def _write_all(
    stores: Stores, asked: tuple[date, str, str], left_out: str
) -> list[tuple[Issue, bool]]:
    """Write pages and workbooks; return each statement, and whether it is new.

    `asked`: month, partner, connection. `left_out`: why they have no PDF yet.
    """
    issues = []
    # `erase` holds the same lock: no statement is written of books that were opened before it.
    with hold_lock(stores.metadata.locks, "export"):
        remove_left_over(stores.home, held="export")
        delete_unfinished(stores)
        written = IssuesOfMonth(stores, asked[0])
        for statement in read_statements(stores, *asked):
            stop.raise_if_requested()
            issue = _issue(stores, statement, written)
            is_new = not issue.sha256
            if is_new:
                issue.left_out = left_out
                page = render_statement(statement).encode()
                write_issue(stores, issue, {"html": page, "xlsx": write_workbook(statement)})
            elif issue.breaks != statement.breaks:  # of an earlier release, which did not keep them
                issue.breaks = list(statement.breaks)
                write_issue(stores, issue, {})
            issues.append((issue, is_new))
        write_list(stores)
    return issues


def _add_pdf(stores: Stores, issue: Issue, browser: str) -> None:
    """Print the page of a statement that has no PDF yet.

    A browser takes half a second for each, so the lock is held only to write the file: otherwise
    exports and `erase` would wait for all. What was erased meanwhile is not written.
    """
    stop.raise_if_requested()
    page = stored_page(stores, issue)
    if not page or any(name.endswith(".pdf") for name in issue.sha256):
        return
    contents = {}
    try:
        contents["pdf"] = print_page(browser, page, stores.home.statements)
        left_out = ""
    except NoPdf as error:
        left_out = str(error)
    with hold_lock(stores.metadata.locks, "export"):
        if is_kept(stores, issue):
            issue.left_out = left_out
            write_issue(stores, issue, contents)


def list_statements(
    stores: Stores, month: date | None = None, partner: str = "", connection: str = ""
) -> list[Row]:
    """Return the statements that were written, newest first: of a month, or a partner, or all.

    `sent` has what people noted: when it was sent, the recipient, and who noted it. `problem` says
    that files are missing or are not those that were written, or that a file belongs to no
    statement.
    Raises ConfigurationError for an unknown connection, StorageFailed.
    """
    issues, unreadable = all_issues(stores)
    _require_connection(stores, issues, connection)
    notes = SentNotes(stores)
    rows = []
    for issue in issues:
        is_asked = month is None or issue.month == f"{month:%Y-%m}"
        is_connection = connection in ("", issue.connection)
        if is_asked and is_connection and partner in ("", issue.partner, issue.name):
            rows.append(_row(stores, issue, notes))
    for file, why in {**unreadable, **notes.unreadable}.items():
        rows.append(_problem(f"{file} cannot be read: {why}"))
    rows += [_problem(UNFINISHED.format(file)) for file in unfinished(stores)]
    rows += [_problem(LOST.format(file)) for file in lost(stores)]
    return rows


def _require_connection(stores: Stores, issues: list[Issue], connection: str) -> None:
    """Raise ConfigurationError for a connection that nobody configured, and without a statement."""
    known = {*stores.settings.connections(), *(issue.connection for issue in issues)}
    if connection and connection not in known:
        raise ConfigurationError(
            f"There is no connection `{printable(connection, 40)}`.",
            f"Connections: {', '.join(sorted(known))}.",
        )


def _problem(text: str) -> Row:
    """Return a row that has nothing but a problem."""
    return dict.fromkeys((*COLUMNS, "is_new")) | {"problem": text}


def kept_with(stores: Stores, text: str) -> list[Row]:
    """Return a row for each statement and note that has a value. Raises StorageFailed."""
    return [{"file": str(file), "records": None} for file in files_with(stores, text)]


def erase_statements(stores: Stores, text: str) -> list[Path]:
    """Delete the statements that show an identifier; return the files that are gone.

    The caller holds the lock `export`. Raises StorageFailed.
    """
    return delete_with(stores, text)


def _row(stores: Stores, issue: Issue, notes: SentNotes) -> Row:
    """Return a statement as it is listed. Reads its files whole."""
    folder = stores.home.statements / issue.month
    store = stores.warehouse.store
    changed = []
    for name, digest in issue.sha256.items():
        if digest_of(store.get(folder / name)) != digest:
            changed.append(name)
    row = {name: getattr(issue, name) for name in COLUMNS if hasattr(issue, name)}
    return row | {
        "provisional": list(issue.provisional),
        "files": [str(folder / name) for name in issue.sha256],
        "sha256": dict(issue.sha256),
        "sent": [msgspec.structs.asdict(note) for note in notes.of(path_of(stores, issue))],
        "problem": UNCHANGED.format(", ".join(changed)) if changed else None,
    }


def _issue(stores: Stores, statement: Statement, written: IssuesOfMonth) -> Issue:
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
        written_at=stores.clock.utc_now(),
        written_by=name_of(os.getuid()),
        sha256={},
        provisional=list(statement.provisional),
        asked={row["currency"] or "": f"{row['asked']:f}" for row in statement.totals},
        content=content,
        shown=digests_of(statement),
        breaks=list(statement.breaks),
    )
