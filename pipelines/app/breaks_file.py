"""Breaks as a workbook in which people fill in decisions, and what they filled in read back."""

import csv
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import duckdb
import pandas as pd
import pyarrow as pa

from pipelines.app.breaks import BreakFilter, Verdict, read_breaks
from pipelines.app.export_table import list_tables
from pipelines.app.export_xlsx import write_workbook
from pipelines.app.session import AppSession
from pipelines.core.errors import ConfigurationError
from pipelines.core.files import storing, write_durably
from pipelines.core.text import counted, printable
from pipelines.warehouse.duckdb_file import Row

EMPTY: Final = ["decision", "owner", "reason"]
COLUMNS: Final = ["break_id", "difference", "rows", *EMPTY]
# What the readers raise for files that are none, or are damaged.
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


def write_file(breaks: pa.Table, file: Path) -> list[str]:
    """Write breaks to a new workbook; return the columns in which numbers are text.

    Raises ConfigurationError where the file exists, StorageFailed.
    """
    if file.exists():
        raise ConfigurationError(
            f"{file} exists already, perhaps with decisions. It is left as it is.",
            "Name a file that does not exist.",
        )
    part = file.with_name(f".{file.name}.part")
    try:
        with storing(file, "the command again"), duckdb.connect() as sheet:
            sheet.register("listed", breaks)
            sheet.execute(CREATE_SHEET)
            (table,) = list_tables(sheet)
            rounded = write_workbook(table, part)
            write_durably(file, part.read_bytes())
    finally:
        part.unlink(missing_ok=True)
    return rounded


def read_decisions(session: AppSession, file: Path) -> list[Row]:
    """Return the breaks that a workbook or CSV file decides about, each with its verdict.

    Raises ConfigurationError if a row is wrong.
    """
    breaks = read_breaks(session, BreakFilter(), with_resolved=True).to_pylist()
    known = {each["break_id"]: each for each in breaks}
    decided, problems = dict[str, Row](), list[str]()
    for number, cells in enumerate(_read_rows(file), 2):
        if not any(cells[name] for name in EMPTY):
            continue
        break_id = cells["break_id"]
        verdict = Verdict(cells["decision"].lower(), cells["reason"], cells["owner"])
        problem = _problem(known.get(break_id), cells, verdict)
        if break_id in decided:
            problem = f"break `{break_id}` is in the file twice"
        if problem:
            problems.append(f"Row {number}: {problem}.")
        else:
            decided[break_id] = known[break_id] | verdict._asdict()
    if problems or not decided:
        wrong = f"{counted(len(problems), 'row')} wrong. {' '.join(problems)}"
        raise ConfigurationError(
            f"Nothing of {file} was recorded: {wrong if problems else 'no row has a decision.'}",
            "Correct the file, or write a new one with `partner-sync breaks --xlsx FILE`.",
        )
    return [*decided.values()]


def _problem(found: Row | None, cells: dict[Any, Any], verdict: Verdict) -> str:
    """Return why a row of a file cannot be taken over; empty if it can."""
    if found is None:
        return f"unknown break `{printable(cells['break_id'], 40)}`"
    for name in ("difference", "rows"):
        if not _is_number(cells[name], found[name]):
            then, now = printable(cells[name], 40), found[name]
            return f"{name} was `{then}` in the file and is {now} now"
    return verdict.problem(found)


def _is_number(text: str, number: Decimal | int | None) -> bool:
    try:
        return Decimal(text) == number
    except InvalidOperation:
        return not text and number is None


def _read_rows(file: Path) -> list[dict[Any, Any]]:
    """Return the rows below the headings, with text in every cell."""
    try:
        if file.suffix.lower() == ".xlsx":
            table = pd.read_excel(file, header=None, dtype=str, keep_default_na=False)
        else:
            table = pd.read_csv(
                file,
                sep=None,  # found in the first row
                header=None,
                dtype=str,
                keep_default_na=False,
                encoding="utf-8-sig",
                skip_blank_lines=False,
                engine="python",
            )
        table = table.fillna("").map(str.strip)
        table = table.set_axis(table.iloc[0], axis=1)[1:]
    except UNREADABLE as error:
        raise ConfigurationError(
            f"{file} cannot be read as a workbook or as CSV: {printable(error)}. Nothing was "
            "changed.",
            "Save it as .xlsx, or as CSV in UTF-8.",
        ) from error
    if missing := [name for name in COLUMNS if name not in table]:
        raise ConfigurationError(
            f"{file} has no column {', '.join(missing)} in its first row. Nothing was changed.",
            "Write a new file with `partner-sync breaks --xlsx FILE`.",
        )
    return table.to_dict("records")
