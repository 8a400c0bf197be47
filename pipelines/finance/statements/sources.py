"""Opens what the statements of a month are made of.

Of a closed month, figures are those of its copy: what was signed is what partners are told. Of any
other month, and of connections for which it is not closed, they are those of the published books.
So is what is paid of bills, always: a copy does not know what was paid since.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Final

import duckdb

from pipelines.core.errors import ConfigurationError
from pipelines.core.text import printable
from pipelines.finance.books_state import why_outdated
from pipelines.finance.close_refusals import PROOFS, TERMS, end_of
from pipelines.finance.inputs import read_inputs, standing_closes
from pipelines.finance.mapping import parse_mapping
from pipelines.finance.reconcile.close_copy import MANIFEST
from pipelines.finance.reconcile.roles import SIDES
from pipelines.finance.reconciled import MAPPING, create_rows, open_books, open_reconciled
from pipelines.finance.statements import words
from pipelines.finance.statements.figures import Source, Statement, read_balance, read_statement
from pipelines.finance.statements.identifiers import hide_erased, is_erased
from pipelines.finance.statements.tables import Key, prepare, prepare_balances
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
# The end of the oldest reading of each connection's lists, as the report has it, and whether these
# are complete.
LISTS: Final = """
SELECT
    lists.connection, coalesce(min(lists.ended_at), basis.as_of) AS as_of,
    bool_and(lists.complete IS TRUE) AS is_complete
FROM reconciliation.lists AS lists
CROSS JOIN reconciliation.basis AS basis
WHERE lists.is_compared
GROUP BY lists.connection, basis.as_of
UNION ALL
SELECT '', basis.as_of, false FROM reconciliation.basis AS basis
"""
LOADED: Final = "SELECT DISTINCT loads.connection FROM meta.loads AS loads"
NO_LIST: Final = ""  # of a connection of which the version has no list any more


@dataclass(frozen=True)
class _Opened:
    """Figures that are open, and what they are of."""

    db: duckdb.DuckDBPyConnection
    source: Source
    erased: Collection[str] = ()
    """Digests of what was erased since a copy was written: books have none of it."""


def never_loaded(stores: Stores) -> list[str]:
    """Return the configured connections of which the published version has no list."""
    with open_books(stores) as (_version, db):
        loaded = {name for (name,) in db.execute(LOADED).fetchall()}
    return [name for name in stores.settings.connections() if name not in loaded]


def read_statements(
    stores: Stores, month: date, partner: str = "", connection: str = ""
) -> Iterator[Statement]:
    """Yield the statements of a month: of one partner (identifier or name), or of all (empty).

    `connection`: of this one; of all (empty). Records that name no partner are in none. Raises
    ConfigurationError for an unknown partner, month or connection, and where usage is not compared
    with billing; PartnerSyncError.
    """
    text = f"{month:%Y-%m}"
    options = {"month": text, "partner": partner, "connection": connection}
    erased = read_inputs(stores).erased
    with ExitStack() as stack:
        version, db = stack.enter_context(open_reconciled(stores, "summary", options))
        create_rows(db)
        ((mapping,),) = db.execute(MAPPING).fetchall()
        accounts = parse_mapping(mapping).accounts
        side = accounts.side if accounts else None
        names: dict[Key, str] = {}
        for row in fetch_rows(db, NAMES):
            names[row["connection"], row["partner"]] = row["name"] or row["partner"]
        opened_of: dict[Key, _Opened] = {}
        sources = _sources_of_books(stores, db, month, version.number)
        for key in prepare(db, month):
            opened_of[key] = _Opened(db, sources.get(key[0], sources[NO_LIST]))
        has_balances = prepare_balances(db, month)
        for folder, close in standing_closes(stores).items():
            if close.month == month:
                _replace_signed(opened_of, stack, (folder, close), erased)
        keys = [key for key in opened_of if connection in ("", key[0])]
        for key in _chosen(keys, names, partner, text):
            opened = opened_of[key]
            name = names.get(key, key[1])
            statement = read_statement(opened.db, key, name, month, opened.source)
            if has_balances:
                as_of = sources.get(key[0], sources[NO_LIST]).as_of
                statement = replace(statement, balance=read_balance(db, key, as_of))
            yield _without(replace(statement, side=side), opened.erased)


def _replace_signed(
    opened_of: dict[Key, _Opened],
    stack: ExitStack,
    copy: tuple[Path, Close],
    erased: Collection[str],
) -> None:
    """Let the partners of a closed month have the figures of its copy, and no other ones.

    Partners that were erased since have none.
    """
    folder, close = copy
    db = stack.enter_context(open_copy(folder, close))
    try:
        partners = prepare(db, close.month)
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        raise ConfigurationError(
            f"The copy {folder} was written by an earlier release, and lacks what a statement "
            "needs. No statement was written.",
            "Run `partner-sync close reopen` with --reason, then close the month again.",
        ) from error
    manifest = json.loads((folder / MANIFEST).read_bytes())
    # A connection that was added after the close is not in the copy.
    of_copy = manifest.get("connections", {key[0] for key in opened_of})
    signed = of_copy if close.connections is None else close.connections
    for key in list(opened_of):
        if key[0] in signed:
            del opened_of[key]
    opened = _Opened(db, _source_of_copy(folder, close, manifest["as_of"]), erased)
    for key in partners:
        if not is_erased(key[1], erased):
            opened_of[key] = opened


def _without(statement: Statement, erased: Collection[str]) -> Statement:
    """Return a statement without identifiers that were erased."""
    requests = [
        replace(request, lines=hide_erased(request.lines, erased)) for request in statement.requests
    ]
    corrections = hide_erased(statement.corrections, erased)
    return replace(statement, requests=requests, corrections=corrections)


def _source_of_copy(folder: Path, close: Close, as_of: str) -> Source:
    copy = f"{folder.parent.name}/{folder.name}"
    return Source(
        name=f"signed copy {copy} of version {close.version}, manifest {close.manifest_sha256}",
        as_of=datetime.fromisoformat(as_of),
        version=close.version,
        is_signed=True,
    )


def _sources_of_books(
    stores: Stores, db: duckdb.DuckDBPyConnection, month: date, version: int
) -> dict[str, Source]:
    """Return what the published books prove of a month, by connection."""
    common = []
    if any(row["is_needed"] for row in read_not_evaluated(db)):
        common.append(words.NOT_CHECKED)
    if why_outdated(stores):
        common.append(words.OUTDATED)
    not_over = _not_over(db, month)
    name = f"books {BooksFolder(stores.warehouse).published()} of version {version}"
    sources = {}
    for row in fetch_rows(db, LISTS):
        provisional = list(common)
        if row["connection"] in not_over:
            provisional.insert(0, words.NOT_OVER)
        if not row["is_complete"]:
            provisional.append(words.NOT_COMPLETE)
        sources[row["connection"]] = Source(name, row["as_of"], version, tuple(provisional))
    return sources


def _not_over(db: duckdb.DuckDBPyConnection, month: date) -> set[str]:
    """Return the connections of which a list was not read after the month and its grace.

    It is what keeps a month from being closed: another connection that was read later proves
    nothing. That a list is not complete is another reason.
    """
    ((as_of, time_zone, grace_days),) = db.execute(TERMS).fetchall()
    ends = end_of(month, grace_days, time_zone)
    found = set()
    for proof in fetch_rows(db, PROOFS, {"month": month}):
        began_at = proof["began_at"] or as_of
        if proof["stream"] in SIDES and began_at < ends:
            found.add(proof["connection"])
    return found


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
    if not partner:
        raise ConfigurationError(
            f"No partner has usage or bills in {month}. No statement was written."
        )
    who = printable(partner)
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
