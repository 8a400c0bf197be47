"""What the last reading of a list left: how many rows it had, and their order where a key tells it.

Here: reading it from manifest and archive. Not here: what the next reading makes of it (api/chain).
"""

from pipelines.api import key as keys
from pipelines.api.before import Before
from pipelines.api.seen import Seen, mark
from pipelines.errors import LandingFailed
from pipelines.state.journal import ManifestRow
from pipelines.state.proof import Proof
from pipelines.warehouse.archive import Archive, Manifest


def length(proof: Proof) -> int | None:
    """Return how many rows a list had, None where its last reading does not say.

    Not the rows seen where they were not counted: of a list that is another one in each answer they
    are many times as many.
    """
    if proof.places is not None:
        return proof.places
    return None if proof.grade.marked else proof.rows


def before(archive: Archive, last: ManifestRow | None, key: str | None) -> Before:
    """Return what a list read by a key is compared with; `last` is its newest manifest."""
    if last is None:
        return Before()
    rows = length(last.proof) or 0
    try:
        manifest = archive.read(last.file)
        ordered = key is not None and manifest.key == key and manifest.stitched
        return Before(rows, _order(archive, manifest, key) if ordered and key else None)
    except LandingFailed:
        return Before(rows)  # without its pages there is no evidence either way


def _order(archive: Archive, manifest: Manifest, key: str) -> Seen:
    """Return the rows of a manifest's chain by place."""
    order, place = Seen(), 0
    for page, stitched in zip(manifest.pages, manifest.stitched, strict=True):
        if not stitched:
            continue
        found = keys.keys(archive.body(page.sha256), key)[:stitched]
        order.add((place + row, mark(each)) for row, each in enumerate(found) if each)
        place += len(found)
    return order
