"""Reconciliation as a part of a build: what it rests on besides rows, and whether that changed."""

import hashlib
from contextlib import closing, suppress
from typing import Any, Final

import duckdb

from pipelines.config.mapping import REMEDY, mapping_digest, read_mapping
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.metadata.decisions import break_decisions
from pipelines.publish.stores import Stores
from pipelines.reconcile.engine import Inputs
from pipelines.warehouse.duckdb_file import Version, Warehouse

DIGEST: Final = "SELECT basis.digest FROM reconciliation.basis AS basis"


def read_inputs(stores: Stores) -> Inputs:
    """Return the mapping, or why there is none, and what people decided about breaks."""
    file, problem = stores.settings.places.mapping_file, f"Nothing is mapped. {REMEDY}"
    try:
        mapping = read_mapping(file)
    except ConfigurationError as error:
        mapping, problem = None, f"{error} {error.remedy}"
    with stores.metadata.transaction() as session:
        decisions = break_decisions(session)
    last = decisions[-1]["number"] if decisions else 0
    digest = hashlib.sha256(f"{mapping_digest(file)} {last}".encode()).hexdigest()
    return Inputs(mapping, problem, digest, decisions)


def is_outdated(stores: Stores, version: Version, inputs: Inputs) -> bool:
    """Return whether a version was reconciled with another mapping or before other decisions."""
    with suppress(duckdb.CatalogException), closing(stores.warehouse.open(version.number)) as db:
        return bool(db.execute(DIGEST).fetchall() != [(inputs.digest,)])
    return True


def remembered_breaks(warehouse: Warehouse) -> Any:
    """Return the breaks of the published version as an Arrow table; None where there are none."""
    with suppress(PartnerSyncError, duckdb.Error), closing(warehouse.open()) as db:
        return db.execute("FROM reconciliation.breaks").to_arrow_table()
    return None
