"""Reads what books rest on besides a version of the warehouse."""

import hashlib
from datetime import date
from pathlib import Path
from typing import Final

from sqlalchemy import select

from pipelines.core.errors import ConfigurationError
from pipelines.finance.doubt import NOT_MAPPED
from pipelines.finance.mapping import REMEDY, mapping_digest, read_mapping
from pipelines.finance.reconcile.engine import Inputs
from pipelines.metadata.decisions import break_decisions, decisions_of
from pipelines.metadata.tables import Close
from pipelines.publish.stores import Stores
from pipelines.warehouse.books import FORMAT

RULES_OF: Final = 3  # grows with what reconciliation concludes: books are then made again


def read_inputs(stores: Stores) -> Inputs:
    """Return the mapping, or why there is none, decisions about breaks, and closes of months."""
    file = stores.settings.home.mapping_file
    problem = f"{NOT_MAPPED} {REMEDY}"
    try:
        mapping = read_mapping(file)
    except ConfigurationError as error:
        mapping = None
        problem = f"{error} {error.remedy}"
    with stores.metadata.transaction() as session:
        decisions = break_decisions(session)
        erased = sorted({each.subject for each in decisions_of(session, "erase")})
    closes = read_closes(stores)
    states = [(each.manifest_sha256, each.reopened_at) for each in closes.values()]
    parts = f"{FORMAT} {RULES_OF} {mapping_digest(file)} {erased} {states}"
    digest = hashlib.sha256(parts.encode()).hexdigest()
    return Inputs(mapping, problem, digest, decisions, closes=closes, erased=erased)


def read_closes(stores: Stores) -> dict[Path, Close]:
    """Return every close of a month, in their order, by the folder of its copy."""
    with stores.metadata.transaction() as session:
        closes = session.scalars(select(Close).order_by(Close.month, Close.number)).all()
    return {copy_folder(stores, each.month, each.number): each for each in closes}


def copy_folder(stores: Stores, month: date, number: int) -> Path:
    """Return the folder of the copy of a month."""
    return stores.settings.home.closes / f"{month:%Y-%m}" / f"{number:03}"
