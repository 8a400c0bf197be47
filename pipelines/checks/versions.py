"""Checks of the published version as a whole."""

from collections.abc import Iterator

from pipelines.checks.check import Finding, Severity
from pipelines.checks.context import CheckContext, ListName
from pipelines.checks.question import CannotKnow, Check, Scope
from pipelines.metadata.versions import VersionStatus


def _is_readable(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    published = context.published
    if published.problem:
        yield check.finding(about, f"Analysts cannot read the warehouse. {published.problem}")
    elif published.version is None:
        if VersionStatus.PUBLISHED not in context.metadata.versions.values():
            raise CannotKnow("Nothing is published yet.")
        message = "The symlink of the warehouse is gone. Analysts find no file; versions are kept."
        yield check.finding(about, message)


def _is_recorded(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    version = context.published.version
    if version is None:
        raise CannotKnow("Nothing is published yet.")
    status = context.metadata.versions.get(version.number)
    if status != VersionStatus.PUBLISHED:
        message = (
            f"Analysts see version {version.number}, and the metadata database says of it: "
            f"{status or 'not known'}. A build was interrupted, or a backup was restored. The rows "
            "are not affected."
        )
        yield check.finding(about, message)


def _is_newest(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    version = context.published.version
    if version is None:
        raise CannotKnow("Nothing is published yet.")
    statuses = context.metadata.versions.items()
    newer = [
        number
        for number, status in statuses
        if status == VersionStatus.PUBLISHED and number > version.number
    ]
    if newer:
        message = (
            f"Analysts see version {version.number}, which was published again. Newer versions "
            f"exist: {', '.join(map(str, newer))}."
        )
        yield check.finding(about, message)


CHECKS = (
    Check(
        code="warehouse_unreadable",
        scope=Scope.WAREHOUSE,
        question="Can analysts open the published version?",
        severity=Severity.ERROR,
        remedy="partner-sync versions rollback",
        find=_is_readable,
    ),
    Check(
        code="version_not_recorded",
        scope=Scope.WAREHOUSE,
        question="Does the metadata database know the published version?",
        severity=Severity.WARNING,
        remedy="partner-sync versions build",
        find=_is_recorded,
    ),
    Check(
        code="version_rolled_back",
        scope=Scope.WAREHOUSE,
        question="Is the newest version the published one?",
        severity=Severity.INFO,
        remedy="partner-sync versions list",
        find=_is_newest,
    ),
)
