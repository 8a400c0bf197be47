"""A reading that lacks more rows than may be gone at once; it waits for a person's word."""

from collections.abc import Iterator

from pipelines.alerts.base import Alert, Finding, Scene, doubled
from pipelines.state.decisions import Kind


def _look(scene: Scene) -> Iterator[Finding]:
    for each in scene.waiting:
        if each.kind is Kind.DISAPPEARED:
            yield Finding(
                f"{each.connection}/{each.stream}",
                f"{each.manifest} is held back: {each.words}",
                f"If the rows are truly gone: `{each.command}`. If not, run sync again.",
                mark=doubled(each.count),
            )


MASS_DISAPPEARANCE = Alert(
    name="mass_disappearance",
    means="The stream keeps its last published rows until a person says that the others are gone.",
    look=_look,
    of_tables=True,
)
