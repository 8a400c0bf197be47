"""A reading that waits for a person's word about columns, keys or rows set aside."""

from collections.abc import Iterator

from pipelines.alerts.base import Alert, Finding, Scene, doubled
from pipelines.state.decisions import Kind


def _look(scene: Scene) -> Iterator[Finding]:
    for each in scene.waiting:
        if each.kind is not Kind.DISAPPEARED:
            yield Finding(
                f"{each.connection}/{each.stream}",
                f"{each.manifest} is held back: {each.words}",
                f"Look at it (`partner-sync {each.kind}`); if it may be so: `{each.command}`.",
                mark=f"{each.kind} {doubled(each.count)}",
            )


HELD_BACK = Alert(
    name="held_back",
    means="The stream keeps its last published rows until a person decides; its pages are kept.",
    look=_look,
    of_tables=True,
)
