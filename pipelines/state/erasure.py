"""A text taken out of what the ledger quotes: addresses, errors, proofs, notes.

Only where it stands as a word of its own: counts, digests and identifiers of ours are no quotes.
Not here: what is taken out of the archive (warehouse.redaction).
"""

import re
from contextlib import closing
from typing import Any

from sqlalchemy import JSON, Column, Engine, select, type_coerce, update
from sqlalchemy.types import TypeEngine

from pipelines.state.judgements import BREAK_ACTS, BREAKS, CLOSES, CORRECTIONS, DECISIONS
from pipelines.state.tables import (
    DESCRIPTIONS,
    IDENTITIES,
    INTERFACE_CHANGES,
    INTERFACE_DIFFERENCES,
    MANIFESTS,
    REDACTIONS,
    REQUESTS,
    ROLLBACKS,
    SCANS,
)
from pipelines.state.types import ProofJson

INSTEAD = "[erased]"
QUOTES: tuple[Column[Any], ...] = (
    *(REQUESTS.c[name] for name in ("path", "query", "request_id", "error")),
    *(SCANS.c[name] for name in ("error", "proof")),
    MANIFESTS.c.proof,
    DECISIONS.c.note,  # a subject is a count, which every replay needs
    IDENTITIES.c.words,
    DESCRIPTIONS.c.body,
    *(INTERFACE_CHANGES.c[name] for name in ("path", "before", "after")),
    *(INTERFACE_DIFFERENCES.c[name] for name in ("field", "described", "found")),
    *(BREAKS.c[name] for name in ("partner", "subject", "cause")),
    BREAK_ACTS.c.note,
    CLOSES.c.note,
    *(CORRECTIONS.c[name] for name in ("id", "partner")),
    ROLLBACKS.c.reason,
    REDACTIONS.c.reason,
)


def erase(engine: Engine, said: str) -> list[str]:
    """Replace a text wherever the ledger quotes it; return the `table.column` that did.

    The file is written anew, so that no free page of it keeps what was there; on PostgreSQL the
    tables are.
    """
    word = re.compile(rf"(?<!\w){re.escape(said)}(?!\w)")
    done = [each for each in QUOTES if _replaced(engine, each, word)]
    _write_anew(engine, sorted({each.table.name for each in done}))
    return [f"{each.table.name}.{each.name}" for each in done]


def _write_anew(engine: Engine, changed: list[str]) -> None:
    """Leave nothing of what was there; in no transaction, which VACUUM would refuse."""
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as ledger:
            for table in changed:
                ledger.exec_driver_sql(f'VACUUM FULL "{table}"')
        return
    with closing(engine.raw_connection()) as file:
        for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            file.cursor().execute(statement)


def _replaced(engine: Engine, column: Column[Any], word: re.Pattern[str]) -> int:
    keys = list(column.table.primary_key)
    kind: TypeEngine[Any] = JSON() if isinstance(column.type, ProofJson) else column.type
    found = select(type_coerce(column, kind), *keys).where(column.is_not(None))
    count = 0
    with engine.begin() as ledger:
        for value, *key in ledger.execute(found).all():
            instead = _without(value, word)
            if instead != value:
                row = [each == held for each, held in zip(keys, key, strict=True)]
                change = {column.name: type_coerce(instead, kind)}
                ledger.execute(update(column.table).where(*row).values(change))
                count += 1
    return count


def _without(value: Any, word: re.Pattern[str]) -> Any:
    """Return a value without the word; of JSON only the texts in it are looked at."""
    if isinstance(value, bytes):
        return re.sub(word.pattern.encode(), INSTEAD.encode(), value)
    return _texts(value, word)


def _texts(value: Any, word: re.Pattern[str]) -> Any:
    if isinstance(value, dict):
        return {name: _texts(each, word) for name, each in value.items()}
    if isinstance(value, list):
        return [_texts(each, word) for each in value]
    return word.sub(INSTEAD, value) if isinstance(value, str) else value
