"""Manifests as a sync leaves them: in the archive and in the ledger, with their proof.

Here: what a test of a whole home needs beside its tables. Not here: folding (conftest).
"""

from datetime import timedelta

import msgspec

from pipelines.state import journal
from pipelines.state.journal import ManifestRow
from pipelines.state.proof import Grade, Proof
from pipelines.warehouse.archive import Manifest
from tests.warehouse.conftest import NOON, Warehouse


def keep(warehouse: Warehouse, manifest: Manifest) -> Manifest:
    """Write a manifest into archive and ledger; return it with its proof."""
    proof = Proof(
        grade=Grade.COMPLETE,
        rows=manifest.rows,
        requests=len(manifest.pages) + 1,
        repairs=0,
        chains=1,
        inversions=0,
        key=manifest.key,
        inferred=False,
        begun_at=manifest.begun_at,
        ended_at=manifest.ended_at,
    )
    kept = msgspec.structs.replace(manifest, proof=proof)
    warehouse.archive.write(kept)
    row = ManifestRow(
        connection=kept.connection,
        stream=kept.stream,
        day=kept.day,
        number=kept.number,
        scan=kept.scan,
        file=kept.file,
        pages=len(kept.pages),
        rows=kept.rows,
        proof=proof,
        written_at=kept.ended_at + timedelta(seconds=1),
    )
    journal.add_manifest(warehouse.ledger, row)
    return kept


def night(warehouse: Warehouse, *pages: str, number: int = 0, stream: str = "things") -> Manifest:
    """Archive, record and fold a reading of a day so many days after the first."""
    manifest = warehouse.manifest(*pages)
    ended = NOON + timedelta(days=number)
    dated = msgspec.structs.replace(
        manifest,
        stream=stream,
        scan=f"{manifest.scan}-{stream}",
        day=ended.date(),
        begun_at=ended,
        ended_at=ended,
    )
    kept = keep(warehouse, dated)
    warehouse.fold(kept)
    return kept
