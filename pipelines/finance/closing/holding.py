"""Finds copies of closed months, notes, reasons and files of configuration that contain a value.

They are named, and never changed.
"""

import html
import json
import zipfile
from pathlib import Path
from typing import Final

import duckdb
from markupsafe import escape
from sqlalchemy import select

from pipelines.core.text import quote_text
from pipelines.finance.inputs import read_copies
from pipelines.finance.reconcile.close_copy import MANIFEST
from pipelines.metadata.tables import Close, Decision
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import SETTINGS, Row

# As text, a row has its values quoted and escaped: so each column is read as it is.
IN_TABLE: Final = """
SELECT count(*)
FROM (
    SELECT 1
    FROM read_parquet({file}) AS rows
    WHERE contains(concat_ws(chr(31), *COLUMNS(*)), $text)
    LIMIT 1
)
"""
REMARKS: Final = ("note", "accept_open", "reopened_reason")


def copies_with(stores: Stores, text: str) -> list[Row]:
    """Return a row for each copy that contains a text: `copy` and its `files`, or why not known."""
    rows = list[Row]()
    for folder in _copies(stores):
        try:
            files = [file.name for file in sorted(folder.iterdir()) if has_text(file, text)]
        except (OSError, duckdb.Error, zipfile.BadZipFile):
            files = ["not known: the copy is damaged"]
        if files:
            rows.append({"copy": f"{folder.parent.name}/{folder.name}", "files": ", ".join(files)})
    return rows


def remarks_with(stores: Stores, text: str) -> list[Row]:
    """Return a row for each note of a close and each reason of a decision that contains a text."""
    rows = list[Row]()
    with stores.metadata.transaction() as session:
        for close in session.scalars(select(Close).order_by(Close.month, Close.number)):
            remarks = {name: getattr(close, name) or "" for name in REMARKS}
            about = f"close {close.month:%Y-%m}, copy {close.number:03}"
            rows += [{"of": about, "text": name} for name in REMARKS if text in remarks[name]]
        for decision in session.scalars(select(Decision).order_by(Decision.number)):
            if text in decision.reason:
                about = f"decision {decision.number}, {decision.kind} {decision.subject}"
                rows.append({"of": about, "text": "reason"})
    return rows


def configuration_with(stores: Stores, text: str) -> list[Row]:
    """Return a row for each file of configuration that contains a text: `file`."""
    home = stores.home
    files = (home.mapping_file, home.settings_file, home.connections_file)
    return [{"file": file.name} for file in files if file.exists() and has_text(file, text)]


def _copies(stores: Stores) -> list[Path]:
    """Return the folders of all copies, also of those that the metadata database does not know.

    It may be older than they are, as after a restore, or the process was killed that wrote one.
    """
    store = stores.warehouse.store
    folders = set(read_copies(stores))
    for manifest in store.list(stores.home.closes, f"*/*/{MANIFEST}"):
        folders.add(store.get_folder(manifest.parent, MANIFEST))
    return sorted(folders)


def has_text(file: Path, text: str) -> bool:
    """Return whether a file contains a text, as its kind of file spells it."""
    if file.suffix == ".parquet":
        query = IN_TABLE.format(file=quote_text(str(file)))
        with duckdb.connect(config=SETTINGS) as db:
            ((found,),) = db.execute(query, {"text": text}).fetchall()
        return bool(found)
    spellings = {text, json.dumps(text)[1:-1], html.escape(text), html.escape(text, quote=False)}
    spellings.add(str(escape(text)))  # in report.html
    spellings.add(text.replace('"', '""'))  # in journal.csv
    contents = [file.read_bytes()]
    if file.suffix == ".xlsx":
        with zipfile.ZipFile(file) as members:
            contents = [members.read(name) for name in members.namelist()]
    return any(spelling.encode() in content for spelling in spellings for content in contents)
