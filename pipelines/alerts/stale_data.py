"""Published rows whose last proven reading is older than the setting `stale_after`."""

from collections.abc import Iterator

from pipelines.alerts.base import Alert, Finding, Scene
from pipelines.state import journal, versions
from pipelines.state.journal import ManifestRow


def _look(scene: Scene) -> Iterator[Finding]:
    """Judge what analysts open: an old day that is replayed does not make it fresh."""
    version = versions.opened(scene.ledger)
    for connection, stream in scene.lists if version else ():
        held = version.holds.get(f"{connection}/{stream}") if version else None
        newest = _newest_proven(journal.manifests(scene.ledger, stream, connection), held)
        if newest is None or newest.proof.ended_at >= scene.now - scene.stale_after:
            continue
        age = (scene.now - newest.proof.ended_at).total_seconds() / 3600
        yield Finding(
            f"{connection}/{stream}",
            f"The newest proven reading of {stream} that is published ended "
            f"{newest.proof.ended_at:%Y-%m-%d %H:%M} UTC, {age:,.0f} hours ago.",
            "See whether the nightly run begins and how it ends (`partner-sync runs`). Now: "
            f"`partner-sync sync --connection {connection} --stream {stream}`.",
        )


def _newest_proven(manifests: tuple[ManifestRow, ...], held: str | None) -> ManifestRow | None:
    """Return the last proven reading up to the one that is published, the first if none is.

    So does run.freshness, of the published file itself.
    """
    files = [each.file for each in manifests]
    if held not in files:
        return None
    published = manifests[: files.index(held) + 1]
    proven = [each for each in published if not each.proof.grade.marked]
    return (proven or list(published[:1]))[-1]


STALE_DATA = Alert(
    name="stale_data",
    means="Whoever asks the published file gets rows that are proven for that day, not for today.",
    look=_look,
)
