"""Reconciliation as a part of a build: what it rests on besides rows, and whether that changed."""

import hashlib
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, Final

import duckdb
from sqlalchemy import select

from pipelines.config.mapping import REMEDY, mapping_digest, read_mapping
from pipelines.core.doubt import NOT_MAPPED
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.metadata.decisions import break_decisions, decisions_of
from pipelines.metadata.tables import Close
from pipelines.publish.versions import Stores
from pipelines.reconcile.engine import Inputs, read_remembered
from pipelines.warehouse.duckdb_file import Version, Warehouse
from pipelines.warehouse.formats import newest, read_format

RULES_OF: Final = 2  # grows with what reconciliation concludes: versions are then reconciled again
DIGEST: Final = "SELECT basis.digest FROM reconciliation.basis AS basis"


def read_inputs(stores: Stores) -> Inputs:
    """Return the mapping, or why there is none, decisions about breaks, and closes of months."""
    file, problem = stores.settings.home.mapping_file, f"{NOT_MAPPED} {REMEDY}"
    try:
        mapping = read_mapping(file)
    except ConfigurationError as error:
        mapping, problem = None, f"{error} {error.remedy}"
    with stores.metadata.transaction() as session:
        decisions = break_decisions(session)
        erased = sorted({each.subject for each in decisions_of(session, "erase")})
    last = decisions[-1]["number"] if decisions else 0
    closes = read_closes(stores)
    states = [(each.manifest_sha256, each.reopened_at) for each in closes.values()]
    parts = f"{RULES_OF} {mapping_digest(file)} {last} {states}"
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


def is_outdated(stores: Stores, version: Version, inputs: Inputs) -> bool:
    """Return whether a version has an older format, or another mapping, decisions or closes."""
    with stores.warehouse.open(version.number) as db:
        if read_format(db) < newest():
            return True
        with suppress(duckdb.CatalogException):
            return bool(db.execute(DIGEST).fetchall() != [(inputs.digest,)])
    return True


def remembered(warehouse: Warehouse) -> dict[str, Any]:
    """Return what the published version remembers, else the newest one that can be read."""
    published = warehouse.published()
    for version in reversed(warehouse.versions()):
        if published is None or version.number > published.number:
            continue
        # Upgraded, as the base of a build is: the tables are those of now.
        with (
            suppress(PartnerSyncError, duckdb.Error),
            warehouse.open_upgraded(version.number) as db,
        ):
            return read_remembered(db)
    return {}
