"""A change of the interface description that breaks what a stream relies on."""

from collections.abc import Iterator
from datetime import timedelta

from pipelines.alerts.base import Alert, Finding, Scene
from pipelines.state import descriptions

SHOWN = timedelta(days=7)  # how long it is news
SAID = 5  # changes that a message names


def _look(scene: Scene) -> Iterator[Finding]:
    for connection in scene.connections:
        breaking = [
            each
            for each in descriptions.changes(scene.ledger, connection)
            if each.meaning == "breaking" and each.first_seen_at > scene.now - SHOWN
        ]
        if not breaking:
            continue
        words = "; ".join(str(each) for each in breaking[-SAID:])
        last = breaking[-1].first_seen_at
        yield Finding(
            connection,
            f"{len(breaking)} change(s) of the interface that break something, the last seen "
            f"{last:%Y-%m-%d %H:%M} UTC: {words}.",
            "Ask the service what is meant; `partner-sync schema` shows what became of the "
            "columns, meta.interface_changes in the published file has every change.",
            mark=f"{last:%Y-%m-%dT%H:%M:%S}",
        )


INTERFACE_CHANGE = Alert(
    name="interface_change",
    means="Columns may stay empty or change their kind from now on; nothing that is there is lost.",
    look=_look,
    event=True,
)
