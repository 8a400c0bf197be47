"""A stream whose last reading proves too little: its order never kept still, or it had no end."""

from collections.abc import Iterator

from pipelines.alerts.base import Alert, Finding, Scene
from pipelines.state import journal


def _look(scene: Scene) -> Iterator[Finding]:
    for connection, stream in scene.lists:
        scan = journal.latest_scan(scene.ledger, connection, stream)
        newest = journal.newest(scene.ledger, stream, connection)
        if scan and scan.status == "unproven":
            mark, words = "NOT_PROVEN", scan.error or "nothing is proven"
        elif newest and newest.proof.grade.marked:
            mark, words = newest.proof.grade.value, newest.proof.sentence(stream)
        else:
            continue
        yield Finding(
            f"{connection}/{stream}",
            words,
            "Read it again when the service is quiet: "
            f"`partner-sync sync --connection {connection} --stream {stream}`. If it stays so, ask "
            "the service for a list that keeps its order.",
            mark,
        )


UNPROVEN_STREAM = Alert(
    name="unproven_stream",
    means=(
        "Rows may be lacking, and nothing counts as missing; what was not proven at all is not "
        "published, the rows before it stay."
    ),
    look=_look,
    calm=True,
)
