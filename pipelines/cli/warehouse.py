"""`versions`: list, build, roll back, rebuild."""

import getpass

import typer

from pipelines.app import versions
from pipelines.app.session import open_session
from pipelines.app.sync import build_version
from pipelines.cli import render
from pipelines.cli.progress import shown_progress
from pipelines.cli.sync import show_published
from pipelines.core.errors import ExitCode
from pipelines.publish.build import BuildResult


def list_versions(*, as_json: bool) -> None:
    """Print versions, newest first."""
    with open_session() as session:
        rows = versions.list_versions(session)
    if as_json:
        render.as_json(rows)
    elif rows:
        render.table(rows)
    else:
        render.line("There are no versions yet. Run `partner-sync sync`.")


def build(*, as_json: bool) -> None:
    """Build from the scans that wait."""
    with open_session() as session, shown_progress() as progress:
        built = build_version(session, progress)
    _show_build(built, as_json=as_json)


def rebuild(*, as_json: bool) -> None:
    """Build from the archive, without a base."""
    with open_session() as session, shown_progress() as progress:
        built = versions.rebuild(session, progress)
    _show_build(built, as_json=as_json)


def rollback(number: int | None, reason: str) -> None:
    """Publish an older version again."""
    with open_session() as session:
        text = versions.roll_back(session, number, person=getpass.getuser(), reason=reason)
    render.line(text)


def _show_build(built: BuildResult, *, as_json: bool) -> None:
    code = ExitCode.DONE if not built.failed else ExitCode.NEEDS_ATTENTION
    if built.version is None:
        code = ExitCode.NOTHING_PUBLISHED
    if as_json:
        render.as_json(built)
        raise typer.Exit(int(code))
    held = [result for result in built.results if result.held]
    render.table(
        [
            {
                "scan": result.scan_id[:8],
                "new": result.new,
                "changed": result.changed,
                "deleted": result.deleted,
                "unchanged": result.unchanged,
                "quarantined": result.quarantined,
                "held": result.held,
            }
            for result in built.results
        ]
    )
    for scan_id, reason in built.failed.items():
        render.line(f"Scan {scan_id[:8]} could not be loaded: {reason}", style="red")
    if held:
        render.line("Held scans wait for `partner-sync approve`.", style="yellow")
    with open_session() as session:
        show_published(session, built)
    raise typer.Exit(int(code))
