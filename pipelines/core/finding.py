"""Findings: what a person should know or do. One list feeds sync, status and Dagster checks."""

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How urgent a finding is. A WARNING or an ERROR makes a sync exit with 3."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Finding(msgspec.Struct, frozen=True):
    """One thing that a person should know.

    `code` names its kind (docs/failures.md), `subject` what exactly it is about (a column, a
    version; empty for the whole stream). A finding is the same one while code, connection, stream
    and subject are the same. `message` says what happened and what it means for the data, `remedy`
    is the command that fixes it. `blocks` is True when data waits for a person.
    """

    code: str
    severity: Severity
    connection: str
    stream: str
    subject: str
    message: str
    remedy: str
    blocks: bool = False
