"""`versions`, `approve`, `verify`."""

from collections.abc import Callable

import typer

from pipelines.app import versions
from pipelines.app.checkup import evaluate_checks
from pipelines.app.decide import decide_held_scan
from pipelines.app.progress import Progress
from pipelines.app.session import AppSession, open_session
from pipelines.app.sync import build_exit_code, build_version
from pipelines.app.verify import verify_files
from pipelines.cli import people, render
from pipelines.cli.progress import shown_progress
from pipelines.cli.sync import build_values, show_build
from pipelines.core.errors import ExitCode
from pipelines.publish.build import BuildResult

COLUMNS = {
    "version": "version",
    "published": "published",
    "megabytes": "MB",
    "created_at": "created",
    "content": "built from",
}


def list_versions(*, as_json: bool) -> None:
    """Print versions, newest first."""
    with open_session() as session:
        rows = versions.list_versions(session)
    if as_json:
        render.as_json(rows)
    elif rows:
        sized = [row | {"megabytes": f"{int(str(row['bytes'])) / 1e6:.1f}"} for row in rows]
        render.table(sized, COLUMNS)
    else:
        render.line("There are no versions yet. Run `partner-sync sync`.")


def build(*, as_json: bool) -> None:
    """Build from the scans that wait."""
    with open_session() as session:
        _build(session, build_version, as_json=as_json)


def rebuild(*, as_json: bool) -> None:
    """Build from the archive, without a base."""
    with open_session() as session:
        _build(session, versions.rebuild, as_json=as_json)


def approve(about: tuple[str, str], reason: str | None, *, reject: bool, build: bool) -> None:
    """Decide about the held scan of a list (connection, stream); build unless it was rejected."""
    with open_session() as session:
        verdict = people.verdict(reason, reject=reject)
        render.line(decide_held_scan(session, *about, verdict))
        if build and not reject:
            _build(session, build_version, as_json=False)


def _build(
    session: AppSession, make: Callable[[AppSession, Progress], BuildResult], *, as_json: bool
) -> None:
    """Build a version, print what was loaded, and exit with what that means."""
    with shown_progress() as progress:
        built = make(session, progress)
    findings = evaluate_checks(session)
    code = build_exit_code(built, findings)
    values = build_values(session, built)
    if as_json:
        render.as_json({"exit_code": int(code), **values, "findings": findings})
    else:
        render.table(values["scans"])
        render.findings(findings)
        show_build(session, built)
    raise typer.Exit(int(code))


def rollback(number: int | None, reason: str | None) -> None:
    """Publish an older version again."""
    with open_session() as session:
        verdict = people.verdict(reason)
        with shown_progress() as progress:
            text = versions.roll_back(
                session, number, progress, person=verdict.person, reason=verdict.reason
            )
    render.line(text)


def verify(*, as_json: bool) -> None:
    """Print which files are damaged."""
    with open_session() as session:
        found = verify_files(session)
    damaged = [{"message": str(error), "remedy": error.remedy} for error in found.damaged]
    if as_json:
        render.as_json({"files": found.files, "damaged": damaged})
    else:
        for each in damaged:
            render.line(each["message"], style="red")
            render.remedy(each["remedy"])
        render.line(f"{found.files:,} files verified, {len(damaged):,} damaged.")
    if damaged:
        raise typer.Exit(int(ExitCode.NEEDS_ATTENTION))
