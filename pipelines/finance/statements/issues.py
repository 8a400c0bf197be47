"""The statements that were written: their files, and what is kept of each.

`statements/2026-09/NAME-001.json` says what was written when, by whom, from which figures, with the
SHA-256 of each file beside it. It is written last: without it, nothing was written. No statement is
ever replaced: other content has the next number. So they say what a partner was told.
"""

import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from pipelines.core.errors import StorageFailed
from pipelines.core.files import private_folder, share
from pipelines.finance.reconcile.close_copy import digest_of
from pipelines.finance.statements.figures import Statement
from pipelines.finance.statements.kept import (
    Kept,
    KeptUnreadable,
    read_kept,
    write_file,
    write_kept,
)
from pipelines.finance.statements.page import render_list
from pipelines.finance.statements.sent_notes import END, SentNotes
from pipelines.versions.identifier import Identifier
from pipelines.versions.stores import Stores

LONGEST_NAME: Final = 40  # characters of an identifier in the name of a file
UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
INDEX: Final = "index.json"
COMMAND: Final = "`partner-sync statement`"
logger = logging.getLogger(__name__)


class Issue(Kept):
    """One statement that was written. `sha256` has the names of its files, `left_out` why no PDF.

    `provisional` are the reasons why its amounts may change; none: they are proven complete.
    `asked` is what it asks for by currency ("" without one), as text; statements of earlier
    releases do not have it. `content` is a digest of what it says, `shown` are digests of the
    identifiers that it shows, with which `erase` compares. `breaks` are those of which it tells.
    """

    month: str
    connection: str
    partner: str
    name: str
    number: int
    source: str
    version: int
    as_of: datetime
    written_at: datetime
    written_by: str
    sha256: dict[str, str]
    provisional: list[str] = msgspec.field(default_factory=list)
    left_out: str = ""
    asked: dict[str, str] = msgspec.field(default_factory=dict)
    content: str = ""
    shown: list[str] = msgspec.field(default_factory=list)
    breaks: list[str] = msgspec.field(default_factory=list)


def name_of_files(connection: str, partner: str) -> str:
    """Return how files of a partner begin: readable, and never the same for two partners.

    Identifiers may differ in characters that no file name has, in case, or behind any length. So
    a digest of the identifier follows what can be read of it.
    """
    digest = sha256(json.dumps([connection, partner]).encode()).hexdigest()
    return f"{UNSAFE.sub('_', partner)[:LONGEST_NAME]}-{digest[:16]}"


class IssuesOfMonth:
    """What was written of a month when this was made: the store is asked once, not by partner."""

    def __init__(self, stores: Stores, month: date) -> None:
        self._stores = stores
        self._files = dict[tuple[str, int], Path]()
        self._numbers = dict[str, int]()
        for file in stores.warehouse.store.list(_folder(stores, month), "*"):
            name, _separator, number = file.stem.rpartition("-")
            if number.isdigit():
                self._numbers[name] = max(int(number), self._numbers.get(name, 0))
            if number.isdigit() and file.suffix == ".json":
                self._files[name, int(number)] = file

    def next_number(self, statement: Statement) -> int:
        """Return the number of the next statement, of which no file is there, not even a part."""
        return self._numbers.get(_name_of(statement), 0) + 1

    def last(self, statement: Statement) -> Issue | None:
        """Return the last statement of a partner; None without one that can be read."""
        name = _name_of(statement)
        file = self._files.get((name, self._numbers.get(name, 0)))
        if file is None:
            return None
        with suppress(KeptUnreadable):  # `--list` says so
            return read_kept(self._stores, file, Issue)
        return None


def write_issue(stores: Stores, issue: Issue, contents: Mapping[str, bytes]) -> None:
    """Write files by the ends of their names, then what is kept of them. Raises StorageFailed."""
    for shared in (stores.home.statements, stores.home.statements / issue.month):
        share(private_folder(shared), stores.settings.readers)
    for end, content in contents.items():
        file = _file_of(stores, issue, end)
        issue.sha256[file.name] = sha256(content).hexdigest()
        write_file(stores, file, content, COMMAND)
    write_kept(stores, _file_of(stores, issue, "json"), issue, COMMAND)


def content_of(statement: Statement) -> str:
    """Return a digest of what a statement says.

    Of books, not from which, nor when they were made: each night has others. A signed copy counts.
    """
    source = statement.source
    never = datetime.min.replace(tzinfo=UTC)
    balance = statement.balance and replace(statement.balance, as_of=never)
    name = source.name if source.is_signed else ""
    plain = replace(source, name=name, version=0, as_of=never)
    said = msgspec.to_builtins(replace(statement, source=plain, balance=balance))
    # What earlier releases do not know is not compared.
    del said["breaks"], said["side"]
    if balance is None:
        del said["balance"]
    return sha256(msgspec.json.encode(said)).hexdigest()


def stored_page(stores: Stores, issue: Issue) -> str:
    """Return the page of a statement as it was written; empty if it is not there any more."""
    for name, digest in issue.sha256.items():
        file = stores.warehouse.store.get(stores.home.statements / issue.month / name)
        if name.endswith(".html") and digest_of(file) == digest:
            return file.read_text(encoding="utf-8")
    return ""


def all_issues(stores: Stores) -> tuple[list[Issue], dict[Path, str]]:
    """Return every statement, newest first, and why others cannot be read, by their file."""
    issues = []
    problems = {}
    for file in sorted(stores.warehouse.store.list(stores.home.statements, "*/*.json")):
        try:
            issues.append(read_kept(stores, file, Issue))
        except KeptUnreadable as why:
            problems[file] = str(why)
    return sorted(issues, key=lambda issue: issue.written_at, reverse=True), problems


def write_list(stores: Stores) -> Path:
    """Write the page that lists all statements; return its file. Raises StorageFailed.

    Beside it, `INDEX` has the same for the report, which need not read the file of each statement.
    """
    file = stores.home.statements / "index.html"
    issues, _problems = all_issues(stores)
    notes = SentNotes(stores)
    listed = []
    rows = []
    for issue in issues:
        day, to = notes.shown(path_of(stores, issue))
        listed.append((issue, day, to))
        rows += [{**row, "sent": day, "sent_to": to} for row in _listed(issue)]
    write_file(stores, file, render_list(listed).encode(), COMMAND)
    write_file(stores, file.with_name(INDEX), msgspec.json.encode(rows), COMMAND)
    return file


def _listed(issue: Issue) -> Iterator[dict[str, Any]]:
    """Yield a row for each currency of a statement, as the report lists it."""
    of_currency: dict[str, str | None] = {**issue.asked} or {"": None}
    for currency, asked in of_currency.items():
        yield {
            "number": f"{issue.number:03}",
            "written": f"{issue.written_at:%Y-%m-%d}",
            "by": issue.written_by,
            "partner": issue.name,
            "partner_id": issue.partner,
            "connection": issue.connection,
            "month": issue.month,
            "currency": currency or None,
            "asked": asked,
            "state": "provisional" if issue.provisional else "final",
            "statement": f"{issue.month}/{_name_of(issue)}-{issue.number:03}.html",
            "breaks": issue.breaks,
        }


def delete_with(stores: Stores, text: str) -> list[Path]:
    """Delete each statement that shows an identifier, and what killed commands left; return files.

    What is kept of a statement goes last: a command that was killed finds it again. Notes of other
    statements lose the value. Raises StorageFailed before anything is deleted if what is kept
    cannot be read.
    """
    store = stores.warehouse.store
    SentNotes(stores).require_readable()
    gone = []
    for name, files in _files_of_statements(stores).items():
        kept = name.with_suffix(".json")
        if _is_unfinished(kept, files):
            gone.extend(files)
        elif _shows(_required(stores, kept), text):
            gone.extend(file for file in files if file != kept)
            gone.append(kept)
    for file in gone:
        store.delete(file)
    gone += SentNotes(stores).erase(text)
    # Also where a killed command had deleted all files: the list still names them.
    if store.list(stores.home.statements, "index.html"):
        write_list(stores)
    return gone


def files_with(stores: Stores, text: str) -> list[Path]:
    """Return what is kept of statements that show an identifier, and notes that contain it.

    Raises StorageFailed if what is kept cannot be read.
    """
    notes = SentNotes(stores)
    notes.require_readable()
    found = [file for file, _note in notes.having(text)]
    for name, files in _files_of_statements(stores).items():
        kept = name.with_suffix(".json")
        if not _is_unfinished(kept, files) and _shows(_required(stores, kept), text):
            found.append(kept)
    return found


def unfinished(stores: Stores) -> list[Path]:
    """Return the files of statements that were never written to their end."""
    found = []
    for name, files in _files_of_statements(stores).items():
        if _is_unfinished(name.with_suffix(".json"), files):
            found.extend(files)
    return found


def lost(stores: Stores) -> list[Path]:
    """Return what was kept of statements that were sent, and is not there any more."""
    found = []
    for name, files in _files_of_statements(stores).items():
        kept = name.with_suffix(".json")
        if kept not in files and not _is_unfinished(kept, files):
            found.append(kept)
    return found


def _is_unfinished(kept: Path, files: list[Path]) -> bool:
    """Return whether a statement was never written to its end; one that has a note was."""
    return kept not in files and not any(END in file.name for file in files)


def delete_unfinished(stores: Stores) -> None:
    """Delete what killed commands left: nobody was told that it was written.

    The caller holds the lock `export`, so no other command writes it. Raises StorageFailed.
    """
    for file in unfinished(stores):
        stores.warehouse.store.delete(file)
        logger.info("Deleted %s, which a killed process had left.", file)


def is_kept(stores: Stores, issue: Issue) -> bool:
    """Return whether a statement is still there, as it was written: `erase` deletes some."""
    file = _file_of(stores, issue, "json")
    if file not in stores.warehouse.store.list(file.parent, file.name):
        return False
    with suppress(KeptUnreadable):  # `--list` says so
        kept = read_kept(stores, file, Issue)
        return (kept.content, kept.sha256) == (issue.content, issue.sha256)
    return False


def _files_of_statements(stores: Stores) -> dict[Path, list[Path]]:
    """Return the files of each statement, also of one that was never written to its end."""
    files_of = defaultdict[Path, list[Path]](list)
    for file in sorted(stores.warehouse.store.list(stores.home.statements, "*/*")):
        # Those with a point are being written, or printed.
        if not file.name.startswith(".") and not file.parent.name.startswith("."):
            files_of[file.with_suffix("")].append(file)
    return files_of


def path_of(stores: Stores, issue: Issue) -> Path:
    """Return the path of a statement without the end of a file's name."""
    return stores.home.statements / issue.month / f"{_name_of(issue)}-{issue.number:03}"


def _file_of(stores: Stores, issue: Issue, end: str) -> Path:
    return path_of(stores, issue).with_suffix(f".{end}")


def _shows(issue: Issue, text: str) -> bool:
    return text in (issue.partner, issue.name) or Identifier(text).digest in issue.shown


def _required(stores: Stores, file: Path) -> Issue:
    """Return what is kept of a statement. Raises StorageFailed if it cannot be read."""
    try:
        return read_kept(stores, file, Issue)
    except KeptUnreadable as why:
        raise StorageFailed(
            f"{file} cannot be read: {why}. Whether its statement shows the value is "
            "not known. No record was erased.",
            "Restore the file from a backup, or delete the statement, then erase again.",
        ) from why


def _name_of(statement: Statement | Issue) -> str:
    return name_of_files(statement.connection, statement.partner)


def _folder(stores: Stores, month: date) -> Path:
    return stores.home.statements / f"{month:%Y-%m}"
