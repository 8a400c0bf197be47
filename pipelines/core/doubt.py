"""What is not known about breaks, and how people are told. It imports no database."""

from collections.abc import Iterable
from typing import NamedTuple


class Doubt(NamedTuple):
    """Why nobody can say that there are no breaks, and what cures it. `subject`: field or rules."""

    subject: str
    message: str
    remedy: str
    is_quarantine: bool = False


def sentences(doubts: Iterable[Doubt]) -> list[str]:
    """Return doubts as sentences, each with what cures it."""
    return [f"Not known: {each.message} {each.remedy}".strip() for each in doubts]
