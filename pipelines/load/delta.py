"""What a load would change: the staged rows compared with the rows that are current.

Here: which rows are new, sent again with other bytes, or gone. Not here: how that is written
(`history.py`), and whether a person must approve it (`findings.py`).
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.archive.records import Digests
from pipelines.load.stage import Stage
from pipelines.load.target import Target

SELECT_DIGESTS = """
SELECT history._digest
FROM {history} AS history
WHERE history._valid_to IS NULL AND history._connection = $connection
"""
# Of staged rows with one key, the one with the smallest digest counts, and none if the row that is
# current is seen. The others are copies of it, or in conflict with it. (Few keys are there twice.)
CREATE_DELTA = """
CREATE OR REPLACE TEMP TABLE load_delta AS
WITH chosen AS (
    SELECT
        staged._key, min({{'digest': staged._digest, 'position': staged._position}}) AS best
    FROM load_staged AS staged
    WHERE hash(staged._key) IN (
        SELECT hash(each._key) FROM load_staged AS each GROUP BY ALL HAVING count(*) > 1
    )
    GROUP BY staged._key
), present AS (
    SELECT
        history._key,
        history._digest NOT IN (SELECT unseen._digest FROM load_unseen AS unseen) AS is_seen
    FROM {history} AS history
    WHERE history._valid_to IS NULL AND history._connection = $connection
)
SELECT
    coalesce(staged._key, present._key) AS _key,
    staged._digest, staged._page, staged._row, staged._position,
    CASE
        WHEN staged._key IS NULL THEN 'deleted'
        WHEN present.is_seen OR staged._digest <> chosen.best.digest THEN 'conflict'
        WHEN staged._position <> chosen.best.position THEN 'copy'
        WHEN present._key IS NULL THEN 'new'
        ELSE 'resent'
    END AS change
FROM load_staged AS staged
LEFT JOIN chosen ON chosen._key = staged._key
FULL JOIN present ON present._key = staged._key
WHERE change <> 'new' AND (staged._key IS NOT NULL OR (
    $ends_rows AND NOT present.is_seen
    AND present._key NOT IN (SELECT unnest($kept_keys::VARCHAR[]))
))
"""
SUM_DELTA = """
SELECT
    delta.change, count(*),
    list(delta._position) FILTER (delta.change IN ('copy', 'conflict')),
    list((delta._page, delta._row)) FILTER (delta.change = 'conflict')
FROM load_delta AS delta
GROUP BY delta.change
"""


@dataclass(frozen=True)
class Delta:
    """What a load would change. Table load_delta has the keys, but those of new rows.

    `dropped` are positions of staged rows that are copies of others, or in conflict with them.
    `resent` rows are current with other bytes.
    """

    stage: Stage
    dropped: pa.Array
    new: int
    resent: int
    deleted: int


def current_digests(target: Target) -> Digests:
    """Return the sorted digests of the rows that are current."""
    return np.sort(target.execute(SELECT_DIGESTS).to_arrow_table().column(0).to_numpy())


def compare(target: Target, stage: Stage) -> Delta:
    """Create table load_delta; put staged rows in conflict with others in quarantine.

    A complete scan ends the rows that it lacks, unless a record of it has no readable key; one with
    another key ends all rows.
    """
    if stage.has_new_key:
        ends_rows = True
        kept_keys = []
    else:
        ends_rows = target.scan.completeness.complete and not stage.keyless
        kept_keys = [record.key for record in stage.quarantined]
    target.db.register("load_staged", stage)
    target.db.register("load_unseen", pa.table({"_digest": stage.current[~stage.is_seen]}))
    target.run(CREATE_DELTA, ends_rows=ends_rows, kept_keys=kept_keys)
    counts = Counter[str]()
    dropped = list[int]()
    conflicts = set[tuple[int, int]]()
    for change, count, positions, rows in target.run(SUM_DELTA):
        counts[change] = count
        dropped += positions or ()
        conflicts.update(rows or ())
    # This reads the pages once more, so it happens once for all conflicts.
    stage.quarantine_conflicts(conflicts)
    staged_rows = stage.rows
    stage.drop_index()
    return Delta(
        stage,
        dropped=pa.array(dropped, pa.int64()),
        new=staged_rows - len(dropped) - counts["resent"],
        resent=counts["resent"],
        deleted=counts["deleted"],
    )
