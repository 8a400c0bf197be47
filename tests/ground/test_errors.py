"""The tree of failures is the one that its file draws."""

import inspect
import re

import pytest

from pipelines import errors
from pipelines.errors import PartnerSyncError, Unavailable
from tests.virtual import EPOCH

CLASSES = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and kind.__module__ == errors.__name__
}
# What else a failure is made with, beside its text.
MORE: dict[str, tuple[object, ...]] = {"Postponed": (EPOCH,)}


def drawn() -> dict[str, str]:
    """Return the parent of each class as the drawing has it."""
    parents, path = {}, [(-1, "Exception")]
    lines = re.findall(r"^([ │├└─]*)([A-Z]\w+)(?=  |$)", errors.__doc__ or "", re.MULTILINE)
    for branch, name in lines:
        while path[-1][0] >= len(branch):
            path.pop()
        parents[name] = path[-1][1]
        path.append((len(branch), name))
    return parents


def test_the_drawing_shows_every_class_under_its_parent() -> None:
    assert drawn() == {name: kind.mro()[1].__name__ for name, kind in CLASSES.items()}


@pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)
def test_its_text_is_what_the_user_reads(kind: type[PartnerSyncError]) -> None:
    more = MORE.get(kind.__name__, ())
    assert str(kind("what happened and what to do", *more)) == "what happened and what to do"


def test_what_may_pass_says_how_often_it_may_be_asked() -> None:
    assert Unavailable("gone").tries == 6
    assert Unavailable("odd", tries=2).tries == 2
