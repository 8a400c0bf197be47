"""Here: the workbook or CSV file in which people decide about breaks: written, and read back.

Files come back as offices of many countries save them. Where the decimal sign is a comma, Excel
separates the fields of CSV by semicolons. Its plain CSV is in the code page of the machine, its
"CSV UTF-8" begins with a byte order mark. Not here: what a decision is (break_decisions).
"""

import csv
import re
from collections.abc import Collection
from decimal import Decimal, InvalidOperation
from io import StringIO
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import duckdb
import pandas as pd
import pyarrow as pa

from pipelines.core.errors import ConfigurationError
from pipelines.core.files import storing, write_durably
from pipelines.core.text import counted, decode_text, printable
from pipelines.finance.break_decisions import BreakDecision
from pipelines.finance.breaks import BreakFilter, read_breaks
from pipelines.versions.export_table import list_tables
from pipelines.versions.export_xlsx import write_workbook
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row

EMPTY: Final = ["decision", "owner", "reason"]
COLUMNS: Final = ["break_id", "difference", "rows", *EMPTY]
CREATE_SHEET: Final = """
CREATE TABLE breaks AS
SELECT
    listed.* EXCLUDE (owner, reason, resolved_by, gone_at, rows_digest, since),
    listed.owner AS assigned_to, listed.reason AS last_reason, NULL::VARCHAR AS decision,
    NULL::VARCHAR AS owner, NULL::VARCHAR AS reason
FROM listed
"""
# Of Western Europe; it reads nearly any byte.
CODE_PAGE: Final = "cp1252"
AS_TEXT: Final[dict[str, Any]] = {"header": None, "dtype": str, "keep_default_na": False}
AS_CSV: Final[dict[str, Any]] = {
    "sep": None,  # found in the first row
    "skip_blank_lines": False,
}
# What the readers raise for files that are none, or are damaged.
UNREADABLE: Final = (
    OSError, ValueError, LookupError, TypeError, AttributeError, SyntaxError, BadZipFile, csv.Error,
)  # fmt: skip
# Spaces of all kinds and apostrophes separate thousands in some countries.
THOUSANDS: Final = re.compile(r"[\s\u00a0\u202f'\u2019]")


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


def read_decisions(stores: Stores, file: Path) -> list[Row]:
    """Return the breaks that a workbook or CSV file decides about, each with its decision.

    Raises ConfigurationError if a row is wrong.
    """
    breaks = read_breaks(stores, BreakFilter()).to_pylist()
    known = {row["break_id"]: row for row in breaks}
    decided: dict[str, Row] = {}
    problems = []
    rows = _read_rows(file, COLUMNS)
    stores.settings.require_no_secret(cells[name] for cells in rows for name in EMPTY)
    for number, cells in enumerate(rows, start=2):
        if not any(cells[name] for name in EMPTY):
            continue
        break_id = cells["break_id"]
        decision = BreakDecision(cells["decision"].lower(), cells["reason"], cells["owner"])
        problem = _problem(known.get(break_id), cells, decision)
        if break_id in decided:
            problem = f"break `{break_id}` is in the file twice"
        if problem:
            problems.append(f"Row {number}: {problem}.")
        else:
            decided[break_id] = known[break_id] | decision._asdict()
    if problems or not decided:
        why = "no row has a decision."
        if problems:
            why = f"{counted(len(problems), 'row')} wrong. {' '.join(problems)}"
        raise ConfigurationError(
            f"Nothing of {file} was recorded: {why}",
            "Correct the file, or write a new one with `partner-sync breaks --xlsx FILE`.",
        )
    return list(decided.values())


def _problem(row: Row | None, cells: dict[Any, Any], decision: BreakDecision) -> str:
    """Return why a row of a file cannot be taken over; empty if it can."""
    if row is None:
        return f"unknown break `{printable(cells['break_id'], 40)}`"
    for name in ("difference", "rows"):
        then = cells[name]
        now = row[name]
        if not says(then, now):
            return f"{name} was `{printable(then, 40)}` in the file and is {now} now"
    return decision.problem(row)


def _read_rows(file: Path, columns: Collection[str]) -> list[dict[Any, Any]]:
    """Return the rows below the headings, with text in every cell.

    Raises ConfigurationError for what is no table, or lacks one of the columns.
    """
    table: pd.DataFrame
    try:
        if file.suffix.lower() == ".xlsx":
            table = pd.read_excel(file, **AS_TEXT)
        else:
            table = pd.read_csv(StringIO(_text(file)), engine="python", **AS_CSV, **AS_TEXT)
        table = table.fillna("").map(str.strip)
        table = table.set_axis(table.iloc[0].str.lower(), axis=1)[1:]
    except UNREADABLE as error:
        raise ConfigurationError(
            f"{file} cannot be read as a workbook or as CSV: {printable(error)}. Nothing was "
            "changed.",
            "Save it as .xlsx, or as CSV in UTF-8.",
        ) from error
    missing = [name for name in columns if name not in table]
    if missing:
        raise ConfigurationError(
            f"{file} has no column {', '.join(missing)} in its first row. Nothing was changed.",
            "Write a new file with `partner-sync breaks --xlsx FILE`.",
        )
    return table.to_dict("records")


def says(text: str, number: Decimal | int | None) -> bool:
    """Return whether text is a number, with a point or a comma; empty text is None."""
    if not text or number is None:
        return not text and number is None
    plain = THOUSANDS.sub("", text).replace("\u2212", "-")
    readings = {plain.replace(",", ""), plain.replace(".", "").replace(",", ".")}
    for reading in readings:
        try:
            if Decimal(reading) == number:
                return True
        except InvalidOperation:
            continue
    return False


def _text(file: Path) -> str:
    data = file.read_bytes()
    try:
        text = decode_text(data)
    except UnicodeDecodeError:
        text = data.decode(CODE_PAGE)
    # Some files tell Excel in their first line what separates fields.
    return re.sub(r"\Asep=.\r?\n", "", text)
