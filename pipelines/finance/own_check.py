"""What is understood of own books, before anything is reconciled with them."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import duckdb

from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.finance import own_books
from pipelines.finance.closing.holding import has_text
from pipelines.finance.mapping import read_mapping
from pipelines.finance.reconcile.own.all_sources import read_third_sides
from pipelines.finance.reconcile.own.database import is_of_one_moment
from pipelines.finance.reconcile.own.not_read import NotRead
from pipelines.finance.reconcile.own.sources import find_files
from pipelines.finance.reconcile.own.third_side import ThirdSide
from pipelines.finance.reconcile.views import create_row_views
from pipelines.finance.reconciled import open_published
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row
from pipelines.warehouse.memory_limit import readable_error

NONE: Final = "mapping.toml has no own books, so nothing is compared with them."
ADD: Final = "Add a table such as [own.ledger] to mapping.toml: docs/reconciliation.md, Own books."
SHOWN: Final = 20  # rows of a source that are not understood


def check(stores: Stores) -> list[Row]:
    """Return a row for each source of own books: what it has, and what of it is not understood.

    Raises ConfigurationError where the mapping has none, PartnerSyncError.
    """
    mapping = read_mapping(stores.home.mapping_file)
    if mapping is None or not mapping.own:
        raise ConfigurationError(NONE, ADD)
    inputs = own_books.read_own_inputs(stores)
    with open_published(stores) as (_version, db), _explained():
        db.execute(f"SET TimeZone = '{mapping.time_zone}'")
        sides = create_row_views(db, mapping)
        own_books.let_spill(stores, db)
        third_sides = read_third_sides(db, mapping, sides, inputs)
        return [_about(third_side) for third_side in third_sides]


def sources_with(stores: Stores, text: str) -> list[Row]:
    """Return a row for each source that contains a text: `source` and its `files`, or why unknown.

    They are the user's: nothing is erased in them. Raises ConfigurationError.
    """
    mapping = read_mapping(stores.home.mapping_file)
    rows = list[Row]()
    for name, source in (mapping.own if mapping else {}).items():
        if source.file is None:
            found = [f"not searched: {source.place}"]
        else:
            found = _files_with(stores, source.file, text)
        if found:
            rows.append({"source": name, "files": ", ".join(found)})
    return rows


def _files_with(stores: Stores, pattern: str, text: str) -> list[str]:
    try:
        files = find_files(stores.home.root, pattern)
        return [file.name for file in files if has_text(file, text)]
    except (NotRead, OSError, duckdb.Error, zipfile.BadZipFile):
        return [f"not searched: {pattern} cannot be read"]


def _about(third_side: ThirdSide) -> Row:
    """Return what is understood of a source."""
    if not third_side.problem:
        third_side.match()
    source = third_side.source
    unread = third_side.unread(SHOWN)
    return {
        "source": third_side.name,
        "connection": source.connection,
        "against": source.against,
        "place": source.place,
        "is_of_one_moment": source.file is not None or is_of_one_moment(str(source.url_variable)),
        "roles": source.roles.columns(),
        "match_by": source.match_by,
        "files": [file._asdict() for file in third_side.files],
        "sha256": third_side.sha256,
        "rows": third_side.rows,
        "left_out": third_side.left_out,
        "matched": third_side.matched,
        "totals": third_side.totals(),
        "not_understood": unread[0]["rows"] if unread else 0,
        "unread": [{name: row[name] for name in ("file", "row", "role", "sent")} for row in unread],
        "problem": third_side.problem,
    }


@contextmanager
def _explained() -> Iterator[None]:
    """Raise PartnerSyncError for what DuckDB refuses."""
    try:
        yield
    except duckdb.Error as error:
        raise PartnerSyncError(
            f"Own books cannot be checked: {readable_error(error)}. Nothing was changed.",
            "If memory was refused, set a larger memory_limit in settings.toml.",
        ) from error
