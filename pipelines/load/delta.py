"""Compares the staged rows of a scan with the rows that are current. Writes nothing that stays."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.load.stage import Digests, Stage
from pipelines.load.target import Target

SELECT_DIGESTS = """
SELECT history._digest
FROM {history} AS history
WHERE history._valid_to IS NULL AND history._connection = $connection
"""
# One row for each key: the one that is current, else the one with the smallest digest. Equal
# digests are copies of one record; other records with the key of another are in conflict.
CREATE_DROPPED = """
CREATE OR REPLACE TEMP TABLE load_dropped AS
WITH kept AS (
    SELECT DISTINCT history._key
    FROM {history} AS history
    JOIN load_staged AS staged ON staged._key = history._key
    WHERE history._valid_to IS NULL AND history._connection = $connection
        AND history._digest NOT IN (SELECT unseen._digest FROM load_unseen AS unseen)
), repeated AS (
    SELECT staged._key FROM load_staged AS staged GROUP BY staged._key HAVING count(*) > 1
)
SELECT
    staged.position, staged._page, staged._row, staged._key,
    kept._key IS NOT NULL
        OR staged._digest <> first_value(staged._digest) OVER by_key AS is_conflict
FROM load_staged AS staged
LEFT JOIN kept ON kept._key = staged._key
WHERE kept._key IS NOT NULL OR staged._key IN (SELECT repeated._key FROM repeated)
WINDOW by_key AS (PARTITION BY staged._key ORDER BY staged._digest, staged.position)
QUALIFY kept._key IS NOT NULL OR row_number() OVER by_key > 1
"""
SELECT_DROPPED = """
SELECT dropped.position, dropped._page, dropped._row, dropped._key, dropped.is_conflict
FROM load_dropped AS dropped
ORDER BY dropped.position
"""
CREATE_DELTA = """
CREATE OR REPLACE TEMP TABLE load_delta AS
WITH staged AS (
    SELECT every._key, every._digest
    FROM load_staged AS every
    WHERE every.position NOT IN (SELECT dropped.position FROM load_dropped AS dropped)
), unseen AS (
    SELECT history._key
    FROM {history} AS history
    JOIN load_unseen AS digests ON digests._digest = history._digest
    WHERE history._valid_to IS NULL AND history._connection = $connection
)
SELECT
    coalesce(staged._key, unseen._key) AS _key,
    staged._digest,
    CASE
        WHEN unseen._key IS NULL THEN 'new'
        WHEN staged._key IS NULL THEN 'deleted'
        ELSE 'changed'
    END AS change
FROM staged
FULL JOIN unseen ON staged._key = unseen._key
WHERE staged._key IS NOT NULL
    OR ($ends_rows AND unseen._key NOT IN (SELECT aside._key FROM load_aside AS aside))
"""
COUNT_DELTA = """
SELECT
    count(*) FILTER (delta.change = 'new'),
    count(*) FILTER (delta.change = 'changed'),
    count(*) FILTER (delta.change = 'deleted')
FROM load_delta AS delta
"""


@dataclass(frozen=True)
class Delta:
    """How the rows of a scan differ from the current ones; table load_delta has the keys.

    `dropped` are positions in the stage of rows whose key another row has.
    """

    new: int
    changed: int
    deleted: int
    dropped: frozenset[int]


def current_digests(target: Target) -> Digests:
    """Return the sorted digests of the rows that are current."""
    return np.sort(target.execute(SELECT_DIGESTS).to_arrow_table().column(0).to_numpy())


def compare(target: Target, stage: Stage) -> Delta:
    """Create table load_delta; put staged rows in conflict with others in quarantine.

    A complete scan ends the rows that it lacks, unless a record of it has no readable key.
    """
    ends_rows = target.scan.completeness.complete and not stage.keyless
    aside = {each.key for each in stage.quarantined if each.key is not None}
    staged = stage.index.append_column("position", pa.array(np.arange(stage.index.num_rows)))
    target.db.register("load_staged", staged)
    target.db.register("load_unseen", pa.table({"_digest": stage.current[~stage.is_seen]}))
    target.db.register("load_aside", pa.table({"_key": pa.array(list(aside), pa.string())}))
    target.run(CREATE_DROPPED)
    dropped = target.run(SELECT_DROPPED)
    conflicts = {(page, row): key for _, page, row, key, in_conflict in dropped if in_conflict}
    stage.quarantine_conflicts(target.scan, conflicts)
    target.run(CREATE_DELTA, ends_rows=ends_rows)
    ((new, changed, deleted),) = target.run(COUNT_DELTA)
    return Delta(new, changed, deleted, frozenset(position for position, *_ in dropped))
