"""Finds the copies of closed months that contain a value. They are named, and never changed."""

import html
import json
import zipfile
from pathlib import Path
from typing import Final

import duckdb

from pipelines.core.text import quote_text
from pipelines.finance.inputs import read_copies
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import SETTINGS, Row

IN_TABLE: Final = """
SELECT count(*) FROM (
    SELECT rows FROM read_parquet({file}) AS rows WHERE contains(rows::VARCHAR, $text) LIMIT 1
)
"""


def copies_with(stores: Stores, text: str) -> list[Row]:
    """Return a row for each copy that contains a text: `copy` and its `files`, or why not known."""
    rows = list[Row]()
    for folder in read_copies(stores):
        try:
            files = [file.name for file in sorted(folder.iterdir()) if _has(file, text)]
        except (OSError, duckdb.Error, zipfile.BadZipFile):
            files = ["not known: the copy is damaged"]
        if files:
            rows.append({"copy": f"{folder.parent.name}/{folder.name}", "files": ", ".join(files)})
    return rows


def _has(file: Path, text: str) -> bool:
    """Return whether a file contains a text, as its kind of file spells it."""
    if file.suffix == ".parquet":
        query = IN_TABLE.format(file=quote_text(str(file)))
        with duckdb.connect(config=SETTINGS) as db:
            ((found,),) = db.execute(query, {"text": text}).fetchall()
        return bool(found)
    spellings = {text, json.dumps(text)[1:-1], html.escape(text), html.escape(text, quote=False)}
    spellings.add(text.replace('"', '""'))  # in journal.csv
    contents = [file.read_bytes()]
    if file.suffix == ".xlsx":
        with zipfile.ZipFile(file) as members:
            contents = [members.read(name) for name in members.namelist()]
    return any(spelling.encode() in content for spelling in spellings for content in contents)
