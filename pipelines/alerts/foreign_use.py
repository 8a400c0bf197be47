"""Somebody else uses an actor's request budget: answers count more requests than we sent, or 429s.

It is known from answers only, so it is news for a day and a half: from one night to the next.
"""

from collections.abc import Iterator
from datetime import timedelta

from pipelines.alerts.base import Alert, Finding, Scene
from pipelines.state import runs, slots

SHOWN = timedelta(hours=36)
LEAST = 3  # answers: one may be another's hiccup
DO = (
    "Find out who else uses these credentials, or set `allowance` to leave them room. A `window` "
    "set shorter than the service's looks the same."
)


def _look(scene: Scene) -> Iterator[Finding]:
    since = scene.now - SHOWN
    for use in slots.foreign_uses(scene.ledger):
        if use.last_at > since and use.answers >= LEAST:
            yield Finding(
                use.actor,
                f"{use.answers:,} answers counted more requests of {use.actor} than we sent, the "
                f"last at {use.last_at:%Y-%m-%d %H:%M} UTC.",
                DO,
            )
    refused: dict[str, int] = {}
    for run in runs.since(scene.ledger, since):
        refused[run.connection] = refused.get(run.connection, 0) + run.refused
    for connection, count in refused.items():
        if count >= LEAST:
            yield Finding(
                connection,
                f"{count:,} requests of {connection} were answered 429 since "
                f"{since:%Y-%m-%d %H:%M} UTC, though our own budget leaves no room for that.",
                DO,
            )


FOREIGN_USE = Alert(
    name="foreign_use",
    means="Both are slowed; the rows are right, but a night may not be over in time.",
    look=_look,
)
