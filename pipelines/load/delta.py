"""Compares the staged rows of a scan with the rows that are current. Writes nothing that stays."""

from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from pipelines.core.text import quote_identifier
from pipelines.load.stage import Digests, Stage

TABLE_EXISTS = """
SELECT count(*)
FROM information_schema.tables AS tables
WHERE tables.table_catalog = current_database()
    AND tables.table_schema = 'history' AND tables.table_name = $stream
"""
SELECT_DIGESTS = """
SELECT history._digest
FROM {history} AS history
WHERE history._valid_to IS NULL AND history._connection = $connection
"""
# Equal digests are copies of one record; of other records with one key the smallest digest stays.
SELECT_REPEATED = """
SELECT
    staged.position,
    staged._digest = first_value(staged._digest) OVER by_key AS is_copy
FROM load_staged AS staged
WHERE staged._key IN (
    SELECT every._key FROM load_staged AS every GROUP BY every._key HAVING count(*) > 1
)
WINDOW by_key AS (PARTITION BY staged._key ORDER BY staged._digest, staged.position)
QUALIFY row_number() OVER by_key > 1
"""
SELECT_KEPT_KEYS = """
SELECT staged.position, false AS is_copy
FROM load_staged AS staged
JOIN {history} AS history ON history._key = staged._key
WHERE history._valid_to IS NULL AND history._connection = $connection
    AND history._digest NOT IN (SELECT unseen._digest FROM load_unseen AS unseen)
"""
CREATE_DELTA = """
CREATE OR REPLACE TEMP TABLE load_delta AS
SELECT
    coalesce(staged._key, unseen._key) AS _key,
    CASE
        WHEN unseen._key IS NULL THEN 'new'
        WHEN staged._key IS NULL THEN 'deleted'
        ELSE 'changed'
    END AS change
FROM load_staged AS staged
FULL JOIN ({unseen}) AS unseen ON staged._key = unseen._key
"""
SELECT_UNSEEN = """
SELECT history._key
FROM {history} AS history
JOIN load_unseen AS unseen ON unseen._digest = history._digest
WHERE history._valid_to IS NULL AND history._connection = $connection
"""
KEEP_ROWS = """
DELETE FROM load_delta
WHERE load_delta.change = 'deleted'
    AND ($keep_all OR load_delta._key IN (SELECT aside._key FROM load_aside AS aside))
"""
COUNT_DELTA = """
SELECT delta.change, count(*)
FROM load_delta AS delta
GROUP BY delta.change
"""


@dataclass(frozen=True)
class Delta:
    """How the rows of a scan differ from the current ones; table load_delta has the keys.

    `repeated` rows of the scan are copies of others. `conflicting` are the places in the stage of
    rows whose key another row has.
    """

    current: int
    new: int
    changed: int
    deleted: int
    repeated: int
    conflicting: tuple[int, ...]


def history_name(table: str) -> str:
    """Return the quoted name of a table in schema history."""
    return f"history.{quote_identifier(table)}"


def has_history(db: duckdb.DuckDBPyConnection, stream: str) -> bool:
    """Return whether a stream was ever loaded."""
    return bool(db.execute(TABLE_EXISTS, {"stream": stream}).fetchall()[0][0])


def current_digests(db: duckdb.DuckDBPyConnection, stream: str, connection: str) -> Digests:
    """Return the sorted digests of the rows that are current."""
    if not has_history(db, stream):
        return np.empty(0, np.uint64)
    query = SELECT_DIGESTS.format(history=history_name(stream))
    found = db.execute(query, {"connection": connection}).to_arrow_table()
    return np.sort(found.column(0).to_numpy())


@dataclass(frozen=True)
class Comparison:
    """What is compared: a stage with the current rows of one connection in one stream."""

    db: duckdb.DuckDBPyConnection
    stream: str
    connection: str
    stage: Stage

    def compare(self, *, ends_rows: bool) -> Delta:
        """Create table load_delta. `ends_rows`: what the scan lacks is deleted.

        Rows with a key that another row of the scan has are dropped from the stage.
        """
        stage = self.stage
        self._register("load_unseen", {"_digest": pa.array(stage.current[~stage.is_seen])})
        self._register_staged()
        known = has_history(self.db, self.stream)
        repeated = self._run(SELECT_REPEATED)
        repeated += self._run(SELECT_KEPT_KEYS) if known else []
        if repeated:
            stage.dropped.update(position for position, _ in repeated)
            self._register_staged()
        unseen = SELECT_UNSEEN if known else "SELECT NULL::VARCHAR AS _key WHERE false"
        self._run(CREATE_DELTA.replace("{unseen}", unseen))
        aside = {each.key for each in stage.quarantined if each.key is not None}
        self._register("load_aside", {"_key": pa.array(list(aside), pa.string())})
        self._run(KEEP_ROWS, keep_all=not ends_rows)
        counts = dict(self._run(COUNT_DELTA))
        return Delta(
            current=len(stage.current),
            new=counts.get("new", 0),
            changed=counts.get("changed", 0),
            deleted=counts.get("deleted", 0),
            repeated=sum(is_copy for _, is_copy in repeated),
            conflicting=tuple(sorted({at for at, is_copy in repeated if not is_copy})),
        )

    def _register_staged(self) -> None:
        keys = pa.concat_arrays([pa.array([], pa.string()), *self.stage.staged_keys])
        digests = pa.concat_arrays([pa.array([], pa.uint64()), *self.stage.staged_digests])
        kept = np.ones(len(keys), np.bool_)
        kept[list(self.stage.dropped)] = False
        staged = {"_key": keys, "_digest": digests, "position": pa.array(np.arange(len(keys)))}
        mask = pa.array(kept)
        self._register("load_staged", {name: each.filter(mask) for name, each in staged.items()})

    def _register(self, name: str, columns: dict[str, Any]) -> None:
        self.db.register(name, pa.table(columns))

    def _run(self, query: str, **values: Any) -> list[Any]:
        query = query.format(history=history_name(self.stream))
        values |= {"connection": self.connection}
        bound = {name: value for name, value in values.items() if f"${name}" in query}
        return self.db.execute(query, bound or None).fetchall()
