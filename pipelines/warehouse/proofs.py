"""What analysts read of the proofs: `meta.proofs`, one row for each manifest that was folded.

Here: writing it. Not here: what a grade means (state.proof).
"""

from collections.abc import Iterable, Sequence

import duckdb
from sqlalchemy import Engine

from pipelines.state import journal
from pipelines.state.journal import ManifestRow
from pipelines.warehouse import meta
from pipelines.warehouse.database import fill, together

COLUMNS = (
    "connection VARCHAR, stream VARCHAR, manifest VARCHAR, day DATE, grade VARCHAR, "
    "rows BIGINT, requests BIGINT, repairs BIGINT, chains BIGINT, inversions BIGINT, "
    "key VARCHAR, key_inferred BOOLEAN, begun_at TIMESTAMPTZ, ended_at TIMESTAMPTZ, "
    "repeats BIGINT, places BIGINT, counted_at TIMESTAMPTZ, not_seen BIGINT, "
    "assumption VARCHAR, flags VARCHAR[], sentence VARCHAR, in_force BOOLEAN, doubt VARCHAR"
)
COMMENTS = {
    "grade": "SNAPSHOT, COMPLETE, COMPLETE_BY_COUNT or PARTIAL; before release 0.2 also "
    "COMPLETE_FOR_UNMOVED and UNSTABLE_ORDER",
    "rows": "distinct rows read",
    "repeats": "rows that the list contains again under the same key; each key is loaded once",
    "places": "length of the list in rows at counted_at; NULL where it was not counted",
    "counted_at": "when the length of the list was checked",
    "not_seen": "how many of the places were never read; NULL where that cannot be said",
    "sentence": "what was proven, in words",
    "in_force": "whether it is the newest of its stream: what current.<stream> says",
    "doubt": "why the rows are not what they should be today; empty where nothing is the matter",
}


def tell(database: duckdb.DuckDBPyConnection, ledger: Engine) -> None:
    """Write what is proven of every manifest in the tables, and what has happened since."""
    database.execute(f"CREATE OR REPLACE TABLE meta.proofs ({COLUMNS})")
    comments = COMMENTS.items()
    together(
        database, (f"COMMENT ON COLUMN meta.proofs.{name} IS '{text}'" for name, text in comments)
    )
    newest = {fold.manifest for fold in meta.held(database).values()}
    written = {each.file: each for each in journal.every_manifest(ledger)}
    doubts = _doubts(ledger, [row for file, row in written.items() if file in newest])
    rows = [
        [*_row(row), row.file in newest, doubts.get(row.file)]
        for fold in meta.folds(database)
        if (row := written.get(fold.manifest))
    ]
    fill(database, "meta.proofs", rows)


def doubtful(ledger: Engine, manifests: Iterable[str]) -> list[str]:
    """Return each `connection/stream` whose rows are in doubt; in what words is not in it.

    The manifests are what its tables are made of: a query for each thousand, and one for readings.
    """
    newest = journal.named(ledger, manifests)
    doubts = _doubts(ledger, newest)
    return sorted(f"{row.connection}/{row.stream}" for row in newest if row.file in doubts)


def _row(manifest: ManifestRow) -> list[object]:
    proof = manifest.proof
    return [
        manifest.connection,
        manifest.stream,
        manifest.file,
        manifest.day,
        proof.grade.value,
        proof.rows,
        proof.requests,
        proof.repairs,
        proof.chains,
        proof.inversions,
        proof.key,
        proof.inferred,
        proof.begun_at,
        proof.ended_at,
        proof.repeats,
        proof.places,
        proof.counted_at,
        proof.not_seen,
        proof.assumption,
        list(proof.flags),
        proof.sentence(manifest.stream),
    ]


def _doubts(ledger: Engine, newest: Sequence[ManifestRow]) -> dict[str, str]:
    """Say of manifests why published rows are marked: their order, or a later reading failed."""
    began = [row.proof.begun_at for row in newest]
    failed = journal.failures(ledger, min(began)) if began else {}
    doubts = {}
    for row in newest:
        later = failed.get((row.connection, row.stream))
        if later and later[0] > row.proof.begun_at:
            words = f"a later reading failed, these are the rows of {row.day}: {later[1]}"
            doubts[row.file] = words
        elif row.proof.grade.marked:
            doubts[row.file] = row.proof.sentence(row.stream)
    return doubts
