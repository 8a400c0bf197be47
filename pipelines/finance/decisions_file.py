"""Reads a workbook or CSV file that people filled in, as offices of many countries save it.

Where the decimal sign is a comma, Excel separates the fields of CSV by semicolons. Its plain CSV is
in the code page of the machine, its "CSV UTF-8" begins with a byte order mark.
"""

import csv
import re
from collections.abc import Collection
from decimal import Decimal, InvalidOperation
from io import StringIO
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import pandas as pd

from pipelines.core.errors import ConfigurationError
from pipelines.core.text import decode_text, printable

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


def read_rows(file: Path, columns: Collection[str]) -> list[dict[Any, Any]]:
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
