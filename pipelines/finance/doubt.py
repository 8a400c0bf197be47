"""What is not known about breaks, and how people are told. It imports no database."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

NOT_MAPPED = "Nothing is mapped, so usage is not reconciled with billing."


class Doubt(NamedTuple):
    """Why nobody can say that there are no breaks, and what cures it. `subject`: field or rules."""

    subject: str
    message: str
    remedy: str
    is_quarantine: bool = False


def of_another_version(books: int, version: int, made_at: datetime | None) -> str:
    """Return that books are not of the published version, as a sentence."""
    since = f" They were made at {made_at:%Y-%m-%d %H:%M} UTC." if made_at else ""
    return (
        f"The books are of version {books}, and analysts see version {version}.{since} Breaks, "
        "report and months do not show what is newer."
    )


def sentences(doubts: Iterable[Doubt]) -> list[str]:
    """Return doubts as sentences, each with what cures it."""
    return [f"Not known: {doubt.message} {doubt.remedy}".strip() for doubt in doubts]


def as_json(doubts: Iterable[Doubt], notes: Iterable[Doubt]) -> dict[str, Any]:
    """Return doubts and notes as `--json` has them."""
    return {
        "not_known": [{"message": doubt.message, "remedy": doubt.remedy} for doubt in doubts],
        "notes": [note.message for note in notes],
    }
