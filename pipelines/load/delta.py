"""Compares the staged rows of a scan with the rows that are current. Writes nothing that stays."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa

from pipelines.archive.records import Digests
from pipelines.load.schema import Types
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
    AND present._key NOT IN (SELECT aside._key FROM load_aside AS aside)
))
"""
SUM_DELTA = """
SELECT
    delta.change,
    count(*),
    list({{'position': delta._position, 'page': delta._page, 'row': delta._row}})
        FILTER (delta.change IN ('copy', 'conflict'))
FROM load_delta AS delta
GROUP BY delta.change
"""
SELECT_LAST = """
SELECT max(loads.valid_time), max_by(loads.key, loads.valid_time)
FROM meta.loads AS loads
WHERE loads.connection = $connection AND loads.stream = $stream
"""


@dataclass(frozen=True)
class Delta:
    """What a load would change. Table load_delta has the keys, but those of new rows.

    `resent` rows are current with other bytes. `dropped` are positions in the stage of rows whose
    key another row has. `known` are the types of columns before the load, `types` those after it.
    `last_time` and `last_key` are time of changes and primary key of the load before.
    """

    stage: Stage
    known: Types
    types: Types
    dropped: frozenset[int]
    new: int
    resent: int
    deleted: int
    last_time: datetime | None
    last_key: str | None

    @property
    def new_types(self) -> Types:
        """The columns that are new or have another type."""
        return {at: kind for at, kind in self.types.items() if self.known.get(at) != kind}


def current_digests(target: Target) -> Digests:
    """Return the sorted digests of the rows that are current."""
    return np.sort(target.execute(SELECT_DIGESTS).to_arrow_table().column(0).to_numpy())


def compare(target: Target, stage: Stage, known: Types) -> Delta:
    """Create table load_delta; put staged rows in conflict with others in quarantine.

    A complete scan ends the rows that it lacks, unless a record of it has no readable key.
    """
    ends_rows = target.scan.completeness.complete and not stage.keyless
    aside = pa.array([each.key for each in stage.quarantined if each.key is not None], pa.string())
    target.db.register("load_staged", stage.index)
    target.db.register("load_unseen", pa.table({"_digest": stage.current[~stage.is_seen]}))
    target.db.register("load_aside", pa.table({"_key": aside}))
    target.run(CREATE_DELTA, ends_rows=ends_rows)
    summed = {change: (count, rows or []) for change, count, rows in target.run(SUM_DELTA)}
    resent, deleted = (summed.get(change, (0, []))[0] for change in ("resent", "deleted"))
    dropped = [row for _, rows in summed.values() for row in rows]
    stage.quarantine_conflicts(summed.get("conflict", (0, []))[1])
    return Delta(
        stage,
        known,
        stage.schema.types(),
        frozenset(row["position"] for row in dropped),
        *(stage.index.num_rows - len(dropped) - resent, resent, deleted),
        *target.run(SELECT_LAST)[0],
    )
