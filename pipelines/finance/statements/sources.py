"""Opens what the statements of a month are made of.

Of a closed month, figures are those of its copy: what was signed is what partners are told. Of any
other month, and of connections for which it is not closed, they are those of the published books.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Final

import duckdb

from pipelines.core.errors import ConfigurationError
from pipelines.core.text import printable
from pipelines.finance.books import why_outdated
from pipelines.finance.inputs import standing_closes
from pipelines.finance.reconcile.close_copy import MANIFEST
from pipelines.finance.reconciled import create_rows, open_reconciled
from pipelines.finance.statements import words
from pipelines.finance.statements.figures import Source, Statement, read_statement
from pipelines.finance.statements.tables import Key, prepare
from pipelines.finance.trace_source import open_copy
from pipelines.finance.unread import read_not_evaluated
from pipelines.metadata.tables import Close
from pipelines.versions.stores import Stores
from pipelines.warehouse.books import BooksFolder
from pipelines.warehouse.duckdb_file import fetch_rows

SHOWN: Final = 10  # identifiers in an error
NAMES: Final = """
SELECT partners.connection, partners.partner, partners.name
FROM reconciliation.partners AS partners
WHERE partners.partner IS NOT NULL
"""
TERMS: Final = """
SELECT
    basis.as_of,
    (basis.as_of AT TIME ZONE basis.time_zone)::DATE
        < ($month + INTERVAL 1 MONTH)::DATE + basis.grace_days AS is_open
FROM reconciliation.basis AS basis
"""
NOT_COMPLETE: Final = """
SELECT DISTINCT lists.connection
FROM reconciliation.lists AS lists
WHERE lists.is_compared AND lists.complete IS NOT TRUE
"""


@dataclass(frozen=True)
class _Opened:
    """Figures that are open, and what they are of."""

    db: duckdb.DuckDBPyConnection
    source: Source


def read_statements(session: Stores, month: date, partner: str = "") -> Iterator[Statement]:
    """Yield the statements of a month: of one partner (identifier or name), or of all (empty).

    Records that name no partner are in none. Raises ConfigurationError for an unknown partner or
    month, and where usage is not compared with billing; PartnerSyncError.
    """
    text = f"{month:%Y-%m}"
    options = {"month": text, "partner": partner}
    with ExitStack() as stack:
        version, db = stack.enter_context(open_reconciled(session, "summary", options))
        create_rows(db)
        names: dict[Key, str] = {}
        for row in fetch_rows(db, NAMES):
            names[row["connection"], row["partner"]] = row["name"] or row["partner"]
        opened_of: dict[Key, _Opened] = {}
        books = _Opened(db, _source_of_books(session, db, month, version.number))
        for key in prepare(db, month):
            opened_of[key] = books
        for folder, close in standing_closes(session).items():
            if close.month == month:
                _replace_signed(opened_of, stack, folder, close)
        for key in _chosen(opened_of, names, partner, text):
            opened = opened_of[key]
            name = names.get(key, key[1])
            yield read_statement(opened.db, key, name, month, opened.source)


def _replace_signed(
    opened_of: dict[Key, _Opened], stack: ExitStack, folder: Path, close: Close
) -> None:
    """Let the partners of a closed month have the figures of its copy, and no other ones."""
    db = stack.enter_context(open_copy(folder, close))
    try:
        partners = prepare(db, close.month)
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        raise ConfigurationError(
            f"The copy {folder} was written by an earlier release, and lacks what a statement "
            "needs. No statement was written.",
            "Run `partner-sync close reopen` with --reason, then close the month again.",
        ) from error
    for key in list(opened_of):
        if close.connections is None or key[0] in close.connections:
            del opened_of[key]
    opened = _Opened(db, _source_of_copy(folder, close))
    opened_of.update(dict.fromkeys(partners, opened))


def _source_of_copy(folder: Path, close: Close) -> Source:
    manifest = json.loads((folder / MANIFEST).read_bytes())
    copy = f"{folder.parent.name}/{folder.name}"
    return Source(
        name=f"signed copy {copy} of version {close.version}, manifest {close.manifest_sha256}",
        as_of=datetime.fromisoformat(manifest["as_of"]),
        version=close.version,
    )


def _source_of_books(
    session: Stores, db: duckdb.DuckDBPyConnection, month: date, version: int
) -> Source:
    """Return what the published books prove of a month."""
    ((as_of, is_open),) = db.execute(TERMS, {"month": month}).fetchall()
    provisional = []
    if is_open:
        provisional.append(words.NOT_OVER)
    if any(row["is_needed"] for row in read_not_evaluated(db)):
        provisional.append(words.NOT_CHECKED)
    if why_outdated(session):
        provisional.append(words.OUTDATED)
    connections = {name for (name,) in db.execute(NOT_COMPLETE).fetchall()}
    return Source(
        name=f"books {BooksFolder(session.warehouse).published()} of version {version}",
        as_of=as_of,
        version=version,
        provisional=tuple(provisional),
        not_complete=frozenset(connections),
    )


def _chosen(
    keys: Iterable[Key], names: Mapping[Key, str], partner: str, month: str
) -> Sequence[Key]:
    """Return the partners that are asked for. Raises ConfigurationError for none, or several."""
    in_order = sorted(keys)
    if not partner and in_order:
        return in_order
    chosen = [key for key in in_order if key[1] == partner]
    if chosen:  # of several connections, where the identifier is in several
        return chosen
    chosen = [key for key in in_order if names.get(key) == partner]
    who = printable(partner) if partner else "Nobody"
    if not chosen:
        raise ConfigurationError(
            f"{who} has neither usage nor bills in {month}. No statement was written."
        )
    if len(chosen) > 1:
        known = ", ".join(printable(key[1], 40) for key in chosen[:SHOWN])
        raise ConfigurationError(
            f"{len(chosen):,} partners are named {who}. No statement was written.",
            f"Name one by its identifier: {known}.",
        )
    return chosen
