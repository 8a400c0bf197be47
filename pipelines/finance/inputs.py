"""Reads what books rest on besides a version of the warehouse."""

import hashlib
from datetime import date
from pathlib import Path
from typing import Final

from sqlalchemy import select

from pipelines.config.values import read_content
from pipelines.core.errors import ConfigurationError
from pipelines.core.text import decode_text
from pipelines.finance.doubt import NOT_MAPPED
from pipelines.finance.mapping import REMEDY, content_digest, mapping_of
from pipelines.finance.reconcile.basis import Inputs
from pipelines.finance.reconcile.close_copy import MANIFEST
from pipelines.finance.reconcile.statements import statements_digest
from pipelines.metadata.decisions import break_decisions, decisions_of, mapping_decision
from pipelines.metadata.tables import Close
from pipelines.versions.stores import Stores
from pipelines.warehouse.books import FORMAT

# Raised when code outside the statements makes other figures of the same rows. Books are then made
# again.
RULES_VERSION: Final = 4


def read_inputs(stores: Stores) -> Inputs:
    """Return the mapping, or why there is none, decisions about breaks, and closes of months."""
    file = stores.settings.home.mapping_file
    mapping = None
    mapping_text: str | None = None
    problem = f"{NOT_MAPPED} {REMEDY}"
    # Read once: mapping, digest and text of the books are of the same content.
    try:
        content = read_content(file)
        digest_of_mapping = content_digest(content)
        mapping_text = _text_of(content)
        mapping = mapping_of(content, file)
    except ConfigurationError as error:
        problem = f"{error} {error.remedy}"
        if mapping_text is None:  # the file cannot be read
            digest_of_mapping = str(error)
    with stores.metadata.transaction() as session:
        decisions = break_decisions(session)
        accepted = mapping_decision(session, digest_of_mapping)
        erased = sorted({decision.subject for decision in decisions_of(session, "erase")})
    closes = read_closes(stores)
    states = [(close.manifest_sha256, close.reopened_at) for close in closes.values()]
    rules = f"{RULES_VERSION} {statements_digest()}"
    parts = f"{FORMAT} {rules} {digest_of_mapping} {erased} {states}"
    return Inputs(
        mapping=mapping,
        mapping_text=mapping_text,
        problem=problem,
        digest=hashlib.sha256(parts.encode()).hexdigest(),
        decisions=[*decisions, accepted] if accepted else decisions,
        closes=closes,
        erased=erased,
    )


def _text_of(content: bytes) -> str:
    """Return the text of a mapping file, also of one that cannot be read as a whole."""
    try:
        return decode_text(content)
    except UnicodeDecodeError:
        return content.decode("utf-8", "replace")


def read_closes(stores: Stores) -> dict[Path, Close]:
    """Return every close of a month, in their order, by the folder of its copy."""
    copies = read_copies(stores)
    return {folder: close for folder, close in copies.items() if close.state == "closed"}


def read_copies(stores: Stores) -> dict[Path, Close]:
    """Return closes by the folder of their copy, also those that are not approved yet."""
    with stores.metadata.transaction() as session:
        closes = session.scalars(select(Close).order_by(Close.month, Close.number)).all()
    return {copy_folder(stores, close.month, close.number): close for close in closes}


def standing_closes(stores: Stores) -> dict[Path, Close]:
    """Return the closes of months that were not reopened, by the folder of their copy."""
    closes = read_closes(stores)
    return {folder: close for folder, close in closes.items() if close.reopened_at is None}


def copy_folder(stores: Stores, month: date, number: int) -> Path:
    """Return the folder of the copy of a month, which may not exist. Raises StorageFailed."""
    folder = stores.settings.home.closes / f"{month:%Y-%m}" / f"{number:03}"
    return stores.warehouse.store.get_folder(folder, MANIFEST)
