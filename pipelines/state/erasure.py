"""A text taken out of what the ledger quotes: addresses, errors, proofs, notes.

Only where it stands as a word of its own: counts, digests and identifiers of ours are no quotes.
Not here: what is taken out of the archive (warehouse.redaction).
"""

import json
import re
from contextlib import closing
from typing import Any

from sqlalchemy import Column, Engine

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

    The file is written anew, so that no free page of it keeps what was there.
    """
    word = re.compile(rf"(?<!\w){re.escape(said)}(?!\w)")
    done = [f"{each.table.name}.{each.name}" for each in QUOTES if _replaced(engine, each, word)]
    with closing(engine.raw_connection()) as ledger:  # no transaction, which VACUUM would refuse
        for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            ledger.cursor().execute(statement)
    return done


def _replaced(engine: Engine, column: Column[Any], word: re.Pattern[str]) -> int:
    table, name = column.table.name, column.name
    found = f'SELECT rowid, "{name}" FROM "{table}" WHERE "{name}" IS NOT NULL'
    count = 0
    with engine.begin() as ledger:
        for row, value in ledger.exec_driver_sql(found).all():
            instead = _without(value, word, whole=name == "proof")
            if instead != value:
                change = f'UPDATE "{table}" SET "{name}" = ? WHERE rowid = ?'
                ledger.exec_driver_sql(change, (instead, row))
                count += 1
    return count


def _without(value: str | bytes, word: re.Pattern[str], *, whole: bool) -> str | bytes:
    """Return a value without the word; of JSON only the texts in it are looked at."""
    if isinstance(value, bytes):
        return re.sub(word.pattern.encode(), INSTEAD.encode(), value)
    if whole:
        parsed = json.loads(value)
        instead = _texts(parsed, word)
        return value if instead == parsed else json.dumps(instead)
    return word.sub(INSTEAD, value)


def _texts(value: Any, word: re.Pattern[str]) -> Any:
    if isinstance(value, dict):
        return {name: _texts(each, word) for name, each in value.items()}
    if isinstance(value, list):
        return [_texts(each, word) for each in value]
    return word.sub(INSTEAD, value) if isinstance(value, str) else value
