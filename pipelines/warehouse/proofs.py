"""What analysts read of the proofs: `meta.proofs`, one row for each manifest that was folded.

Here: writing it. Not here: what a grade means (state.proof).
"""

import duckdb
from sqlalchemy import Engine

from pipelines.state import journal
from pipelines.state.journal import ManifestRow
from pipelines.warehouse import meta
from pipelines.warehouse.database import fill, together
from pipelines.warehouse.meta import Held

COLUMNS = (
    "connection VARCHAR, stream VARCHAR, manifest VARCHAR, day DATE, grade VARCHAR, "
    "rows BIGINT, requests BIGINT, repairs BIGINT, chains BIGINT, inversions BIGINT, "
    "key VARCHAR, key_inferred BOOLEAN, begun_at TIMESTAMPTZ, ended_at TIMESTAMPTZ, "
    "assumption VARCHAR, flags VARCHAR[], sentence VARCHAR, in_force BOOLEAN, doubt VARCHAR"
)
COMMENTS = {
    "grade": "SNAPSHOT, COMPLETE, COMPLETE_FOR_UNMOVED or UNSTABLE_ORDER",
    "rows": "distinct rows read",
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
    newest = set(meta.held(database).values())
    proven = {
        (connection, stream): _by_file(ledger, connection, stream)
        for connection, stream in {(fold.connection, fold.stream) for fold in newest}
    }
    rows = []
    for fold in meta.folds(database):
        manifest = proven[fold.connection, fold.stream].get(fold.manifest)
        if manifest is not None:
            doubt = _doubt(ledger, manifest) if fold in newest else None
            rows.append([*_row(manifest), fold in newest, doubt])
    fill(database, "meta.proofs", rows)


def doubtful(ledger: Engine, folds: Held) -> list[str]:
    """Return each `connection/stream` whose rows are in doubt; in what words is not in it."""
    rows = [
        (fold, _by_file(ledger, fold.connection, fold.stream).get(fold.manifest))
        for fold in folds.values()
    ]
    return sorted(
        f"{fold.connection}/{fold.stream}" for fold, row in rows if row and _doubt(ledger, row)
    )


def _by_file(ledger: Engine, connection: str, stream: str) -> dict[str, ManifestRow]:
    return {each.file: each for each in journal.manifests(ledger, stream, connection)}


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
        proof.assumption,
        list(proof.flags),
        proof.sentence(manifest.stream),
    ]


def _doubt(ledger: Engine, manifest: ManifestRow) -> str | None:
    """Say why a stream's published rows are marked: their order, or a later reading that failed."""
    later = journal.latest_scan(ledger, manifest.connection, manifest.stream)
    if later and later.error and later.begun_at > manifest.proof.begun_at:
        return f"a later reading failed, these are the rows of {manifest.day}: {later.error}"
    return manifest.proof.sentence(manifest.stream) if manifest.proof.grade.marked else None
