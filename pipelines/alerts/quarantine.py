"""Rows that were read and that no table can hold."""

from collections.abc import Iterator

from pipelines.alerts.base import Alert, Finding, Scene, doubled


def _look(scene: Scene) -> Iterator[Finding]:
    for (connection, stream), fold in scene.folds.items():
        if fold.quarantined:
            yield Finding(
                f"{connection}/{stream}",
                f"{fold.quarantined:,} of {fold.read:,} rows of {stream} are set aside, read until "
                f"{fold.ended_at:%Y-%m-%d %H:%M} UTC.",
                "`partner-sync quarantine` names each row, its field, and who can mend it; mostly "
                "the service has to.",
                mark=doubled(fold.quarantined),
            )


QUARANTINE = Alert(
    name="quarantine",
    means="These rows are in no table but quarantine.<stream>: sums lack them.",
    look=_look,
    of_tables=True,
)
