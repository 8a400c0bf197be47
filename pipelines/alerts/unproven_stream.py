"""A stream whose last reading is not proven complete (PARTIAL), or was not loaded at all."""

from collections.abc import Iterator

from pipelines.alerts.base import Alert, Finding, Scene
from pipelines.state import journal


def _look(scene: Scene) -> Iterator[Finding]:
    for connection, stream in scene.lists:
        scan = journal.latest_scan(scene.ledger, connection, stream)
        newest = journal.newest(scene.ledger, stream, connection)
        if scan and scan.status == "unproven":  # read to its end, but not loaded
            mark, words = "refused", scan.error or "The reading was not loaded."
        elif newest and newest.proof.grade.marked:
            mark, words = newest.proof.grade.value, newest.proof.sentence(stream)
        else:
            continue
        yield Finding(
            f"{connection}/{stream}",
            words,
            "Read it again when the service is quiet: "
            f"`partner-sync sync --connection {connection} --stream {stream}`. If it stays so, "
            "ask the service to sort the list by a unique field.",
            mark,
        )


UNPROVEN_STREAM = Alert(
    name="unproven_stream",
    means=(
        "PARTIAL: the rows that were read are published. Rows may be lacking, and none counts as "
        "missing. A reading that was refused is not published; analysts see the rows before it."
    ),
    look=_look,
    calm=True,
)
