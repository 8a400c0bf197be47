"""Which identifiers a statement shows, and hiding those that were erased since a month was signed.

`erase` keeps the digest of a value, never the value. So digests are what is compared.
"""

from collections.abc import Collection, Iterable, Sequence

from pipelines.finance.statements.figures import Statement
from pipelines.versions.erase import ERASED
from pipelines.versions.identifier import Identifier
from pipelines.warehouse.duckdb_file import Row


def digests_of(statement: Statement) -> list[str]:
    """Return the digests of partner, name, and of each record that a statement shows."""
    texts = {statement.partner, statement.name}
    for request in statement.requests:
        for line in request.lines:
            texts.update(_texts(line))
    for row in statement.corrections:
        texts.update(_texts(row))
    return sorted({Identifier(text).digest for text in texts})


def is_erased(text: str, erased: Collection[str]) -> bool:
    """Return whether a value is one of which `erase` keeps the digest."""
    return Identifier(text).digest in erased


def hide_erased(rows: Sequence[Row], erased: Collection[str]) -> Sequence[Row]:
    """Return rows of a signed copy without the identifiers of records that were erased since."""
    if not erased:
        return rows
    return [_hidden(row) if _has_erased(row, erased) else row for row in rows]


def _has_erased(row: Row, erased: Collection[str]) -> bool:
    return any(is_erased(text, erased) for text in _texts(row))


def _hidden(row: Row) -> Row:
    hidden = {name: ERASED for name in ("id", "record") if row.get(name) is not None}
    return {**row, **hidden}


def _texts(row: Row) -> Iterable[str]:
    """Yield the identifiers of a record: a line of a bill has the identifier of the bill, too."""
    for name in ("id", "record"):
        text = row.get(name)
        if text is not None:
            yield text
            yield text.rpartition("#")[0] or text
