"""Rows of `scans` and `lists`: their states and the only functions that change them."""

from enum import StrEnum


class ScanStatus(StrEnum):
    """State of a scan.

    OPEN is being read or can be resumed; ABANDONED will not be. SEALED waits for a build, HELD for
    a person; APPROVED was held and waits for a build. FAILED could not be loaded. REJECTED by a
    person, SUPERSEDED by a newer scan of its list. Which scans are loaded is not a status: a
    version says it itself (`meta.loads`), so that a rollback takes it back too.
    """

    OPEN = "open"
    ABANDONED = "abandoned"
    SEALED = "sealed"
    HELD = "held"
    APPROVED = "approved"
    FAILED = "failed"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"
