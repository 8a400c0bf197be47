"""Reads a workbook as any reader of the format does, without the library that writes it."""

import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET
from zipfile import ZipFile

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


class Cell(NamedTuple):
    """One cell. `type` is inlineStr, b, or n for numbers and times."""

    type: str
    text: str


def read_cells(file: Path) -> list[dict[str, Cell]]:
    """Return the rows below the headings, by heading; a cell that is not there is missing."""
    with ZipFile(file) as archive:
        sheet = ET.fromstring(archive.read("xl/worksheets/sheet1.xml"))  # noqa: S314 - our own
    assert not list(sheet.iter(f"{MAIN}f")), "a formula"
    assert not list(sheet.iter(f"{MAIN}hyperlink")), "a link"
    rows = [
        {re.sub(r"\d", "", cell.attrib["r"]): _cell(cell) for cell in row.iter(f"{MAIN}c")}
        for row in sheet.iter(f"{MAIN}row")
    ]
    names = {at: cell.text for at, cell in rows[0].items()}
    return [{names[at]: cell for at, cell in row.items()} for row in rows[1:]]


def _cell(cell: ET.Element) -> Cell:
    text = "".join(each.text or "" for tag in ("t", "v") for each in cell.iter(MAIN + tag))
    unescaped = re.sub("_x([0-9A-F]{4})_", lambda found: chr(int(found[1], 16)), text)
    return Cell(cell.get("t", "n"), unescaped)
