"""Manifests as a sync leaves them: in the archive and in the ledger, with their proof.

Here: what a test of a whole home needs beside its tables. Not here: folding (conftest).
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from pipelines.state import journal
from pipelines.state.journal import ManifestRow
from pipelines.state.proof import Grade, Proof
from pipelines.warehouse.archive import Manifest
from tests.warehouse.conftest import NOON, Warehouse


def keep(warehouse: Warehouse, manifest: Manifest, **figures: Any) -> Manifest:
    """Write a manifest into archive and ledger; return it with its proof and its figures."""
    proof = Proof(
        grade=manifest.proof.grade if manifest.proof else Grade.COMPLETE,
        rows=manifest.rows,
        requests=len(manifest.pages) + 1,
        repairs=0,
        chains=1,
        inversions=0,
        key=manifest.key,
        inferred=False,
        begun_at=manifest.begun_at,
        ended_at=manifest.ended_at,
        **figures,
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


def counted(warehouse: Warehouse, pages: Sequence[str], superseded: Sequence[str]) -> Manifest:
    """Archive a list that was counted, with the pages read before its length check."""
    every = warehouse.manifest(*superseded, *pages, grade=Grade.COMPLETE_BY_COUNT)
    before, after = every.pages[: len(superseded)], every.pages[len(superseded) :]
    return msgspec.structs.replace(every, pages=after, superseded=before)


def night(
    warehouse: Warehouse,
    *pages: str,
    number: int = 0,
    stream: str = "things",
    superseded: Sequence[str] = (),
) -> Manifest:
    """Archive, record and fold a reading of a day so many days after the first.

    `superseded` are pages read before the length check of a list that was counted.
    """
    manifest = counted(warehouse, pages, superseded) if superseded else warehouse.manifest(*pages)
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
