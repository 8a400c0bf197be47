"""Keeping house: verify a home.

Here: what a verb asks for, in one function each. Not here: how it is done (warehouse).
"""

from collections.abc import Callable
from dataclasses import dataclass

from pipelines.run.session import Session
from pipelines.state import journal, redactions
from pipelines.warehouse.editions import editions
from pipelines.warehouse.verify import Checked, Fault, Verification

__all__ = ["Checked", "Report", "verify"]


@dataclass(frozen=True)
class Report:
    """What a verification looked at, in words, and what it found wrong."""

    words: tuple[str, ...]
    faults: tuple[Fault, ...]


def verify(session: Session, told: Callable[[Checked], None]) -> Report:
    """Look at everything of a home; `told` hears how far the archive is read."""
    looked = Verification(session.work, session.ledger, session.archive, told)
    faults = tuple(looked.faults())
    pages = session.archive.pages()
    looked_at = (
        f"{len(pages):,} archived pages ({sum(pages.values()) / 1e6:,.1f} MB), "
        f"{len(journal.every_manifest(session.ledger)):,} manifests, "
        f"{len(editions(session.work).numbers)} published versions"
    )
    verdict = f"{len(faults)} fault(s)" if faults else "everything is as it was written"
    return Report((looked_at, *_redacted(session), verdict), faults)


def _redacted(session: Session) -> list[str]:
    """Say which pages are not as they were received because records of them were erased."""
    acts: dict[tuple[str, str, str], int] = {}
    for each in redactions.every(session.ledger):
        act = (f"{each.at:%Y-%m-%d}", each.by, each.reason or "no reason given")
        acts[act] = acts.get(act, 0) + len(each.rows)
    return [
        f"{count:,} records were erased from their pages on {day} by {by} ({reason})"
        for (day, by, reason), count in acts.items()
    ]
