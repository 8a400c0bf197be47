"""Commands for versions and files."""

from typing import Annotated

import typer

from pipelines import app
from pipelines.cli.program import WAREHOUSE, Json, Reason, program, versions
from pipelines.cli.terminal import line, print_json, run_sync, show, shown_progress
from pipelines.core.errors import ExitCode


@versions.command("list")
def list_versions(*, json: Json = False) -> None:
    """List versions: which is published, size, when it was built from what."""
    with app.session.open_session() as session:
        show(app.versions.list_versions(session), as_json=json, what="versions")


@versions.command()
def build(*, json: Json = False) -> int:
    """Build and publish a version from the scans that wait, without any request."""
    with app.session.open_session() as session:
        return run_sync(session, [], app.sync.build_version, as_json=json)


@versions.command()
def rollback(
    number: Annotated[
        int | None, typer.Argument(help="Version to roll back to. Default: the previous one.")
    ] = None,
    *,
    reason: Reason,
) -> None:
    """Publish an older version again and hold the scans that it does not contain."""
    with app.session.open_session() as session, shown_progress() as progress:
        text = app.versions.roll_back(session, number, reason, progress)
    line(text)


@versions.command()
def rebuild(*, json: Json = False) -> int:
    """Build a version anew from the archive, without a base and without any request."""
    with app.session.open_session() as session:
        return run_sync(session, [], app.versions.rebuild, as_json=json)


@program.command(rich_help_panel=WAREHOUSE)
def prune(
    *,
    days: Annotated[
        int | None, typer.Option(min=1, help="Days to keep. Default: setting keep_days.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what is old.")] = False,
    json: Json = False,
) -> None:
    """Delete old scan files and versions; a version that holds their rows is kept for good."""
    with app.session.open_session() as session, shown_progress() as progress:
        rows = app.maintenance.prune_files(session, days, progress, dry_run=dry_run)
    show(rows, as_json=json)
    if not json:
        line(f"{len(rows):,} files {'would be' if dry_run else 'were'} deleted.")


@program.command(rich_help_panel=WAREHOUSE)
def verify(*, json: Json = False) -> int:
    """Compare every scan file and version with what was recorded of it."""
    with app.session.open_session() as session:
        found = app.maintenance.verify_files(session)
    damaged = [{"message": str(error), "remedy": error.remedy} for error in found.damaged]
    if json:
        print_json({"files": found.files, "damaged": damaged})
    else:
        show(damaged, as_json=False)
        line(f"{found.files:,} files verified, {len(damaged):,} damaged.")
    return ExitCode.NEEDS_ATTENTION if damaged else ExitCode.DONE
