"""Breaks as a workbook in which people fill in decisions, and what they filled in read back."""

import csv
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from io import StringIO
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import duckdb
import openpyxl
from xlsxwriter.exceptions import XlsxWriterException

from pipelines.app.breaks import Ask, BreakFilter, Verdict, record
from pipelines.app.export_table import list_tables
from pipelines.app.export_xlsx import write_workbook
from pipelines.app.reconciled import Row, open_reconciled, require_known, select
from pipelines.app.session import AppSession
from pipelines.core.errors import ConfigurationError, StorageFailed
from pipelines.core.files import PRIVATE_FILE, durable_rename, sync_file
from pipelines.core.text import printable

EMPTY: Final = ("decision", "owner", "reason")
COLUMNS: Final = ("break_id", "difference", "rows", *EMPTY)
SHOWN_PROBLEMS: Final = 20
# What the reader of workbooks raises for files that are none, or are damaged.
UNREADABLE: Final = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, SyntaxError, BadZipFile),
    csv.Error,
)
CREATE_SHEET: Final = """
CREATE TABLE breaks AS
SELECT
    listed.* EXCLUDE (owner, reason, resolved_by, gone_at), listed.owner AS assigned_to,
    listed.reason AS last_reason, NULL::VARCHAR AS decision, NULL::VARCHAR AS owner,
    NULL::VARCHAR AS reason
FROM listed
"""


def write_file(session: AppSession, chosen: BreakFilter, file: Path) -> list[str]:
    """Write listed breaks to a new workbook; return the columns in which numbers are text.

    Raises as `list_breaks`, ConfigurationError where the file exists, StorageFailed.
    """
    if file.exists():
        raise ConfigurationError(
            f"{file} exists already, perhaps with decisions. It is left as it is.",
            "Name a file that does not exist.",
        )
    part = file.with_name(f".{file.name}.part")
    with open_reconciled(session, "breaks") as (_version, db):
        require_known(db, chosen.values())
        found = db.execute(chosen.query(listed=True), chosen.values()).to_arrow_table()
    with duckdb.connect() as sheet:  # the version cannot be written
        sheet.register("listed", found)
        sheet.execute(CREATE_SHEET)
        try:
            (table,) = list_tables(sheet)
            rounded = write_workbook(table, part)
            part.chmod(PRIVATE_FILE)
            sync_file(part)
            durable_rename(part, file)
        except (OSError, XlsxWriterException) as error:
            raise StorageFailed(
                f"{file} cannot be written: {printable(error)}. It is not there.",
                "Make room or correct the permissions, then run the command again.",
            ) from error
        finally:
            part.unlink(missing_ok=True)
    return rounded


def decide_from_file(session: AppSession, file: Path, ask: Ask) -> int | None:
    """Record the decisions in a workbook or CSV file; return how many, None if `ask` refuses.

    Raises ConfigurationError, and records nothing, if a row is wrong.
    """
    with open_reconciled(session, "breaks") as (_version, db):
        known = {each["break_id"]: each for each in select(db, BreakFilter().query(), {})}
    decided = dict[str, tuple[Row, Verdict]]()
    problems = []
    for number, cells in _filled_rows(file):
        verdict = Verdict(cells["decision"].lower(), cells["reason"], cells["owner"])
        break_id = cells["break_id"]
        problem = _problem(known.get(break_id), cells, verdict)
        if break_id in decided:
            problem = f"break `{break_id}` is in the file twice"
        if problem:
            problems.append(f"Row {number}: {problem}.")
        else:
            decided[break_id] = (known[break_id], verdict)
    if problems or not decided:
        more = len(problems) - SHOWN_PROBLEMS
        text = " ".join(problems[:SHOWN_PROBLEMS]) or "No row has a decision."
        raise ConfigurationError(
            f"{file}: {text}{f' {more:,} more rows are wrong.' if more > 0 else ''} Nothing was "
            "changed.",
            "Correct the file, or write a new one with `partner-sync breaks --xlsx FILE`.",
        )
    return record(session, [*decided.values()], ask)


def _problem(found: Row | None, cells: dict[str, str], verdict: Verdict) -> str:
    """Return why a row of a file cannot be taken over; empty if it can."""
    if found is None:
        return f"unknown break `{printable(cells['break_id'], 40)}`"
    if problem := verdict.problem():
        return problem
    now = {"difference": found["difference"], "rows": found["rows"]}
    for name, value in now.items():
        if _number(cells[name]) != value:
            shown = "none" if value is None else f"{value:f}" if name == "difference" else value
            return f"{name} was `{printable(cells[name], 40)}` in the file and is {shown} now"
    return "" if verdict.fits(found) else f"the break is {found['state']}, so no {verdict.kind}"


def _number(text: str) -> Decimal | str | None:
    """Return a number; the text itself where it is none, which equals no number."""
    if not text:
        return None
    with suppress(InvalidOperation):
        number = Decimal(text)
        return number if number.is_finite() else text
    return text


def _filled_rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows in which somebody wrote something, with their numbers in the sheet."""
    try:
        rows = [[_text(cell) for cell in row] for row in _read_cells(file)]
    except UNREADABLE as error:
        raise ConfigurationError(
            f"{file} cannot be read as a workbook or as CSV: {printable(error)}. Nothing was "
            "changed.",
            "Save it as .xlsx, or as CSV in UTF-8.",
        ) from error
    header = rows[0] if rows else []
    if missing := [name for name in COLUMNS if name not in header]:
        raise ConfigurationError(
            f"{file} has no column {', '.join(missing)} in its first row. Nothing was changed.",
            "Write a new file with `partner-sync breaks --xlsx FILE`.",
        )
    for number, row in enumerate(rows[1:], 2):
        cells = dict.fromkeys(header, "") | dict(zip(header, row, strict=False))
        if any(cells[name] for name in EMPTY):
            yield number, cells


def _read_cells(file: Path) -> list[Any]:
    if file.suffix.lower() == ".xlsx":
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        try:
            return list(book.worksheets[0].iter_rows(values_only=True))
        finally:
            book.close()
    text = file.read_text("utf-8-sig")
    first = text.partition("\n")[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    return list(csv.reader(StringIO(text, newline=""), delimiter=delimiter))


def _text(cell: object) -> str:
    return "" if cell is None else str(cell).strip()
