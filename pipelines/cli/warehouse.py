"""Commands for versions and files."""

import sys
from typing import Annotated, Any

import typer

from pipelines import app
from pipelines.cli.program import WAREHOUSE, Json, Reason, program, versions
from pipelines.cli.terminal import line, note, opened, print_json, run_sync, show, shown_progress
from pipelines.core.errors import ExitCode

ERASED_TOO = (
    "All exports in the home are deleted too, and versions with such records: rollback to them is "
    "not possible any more. Copies elsewhere, copies of closed months, and what the "
    "service sends again, are not erased."
)


@versions.command("list")
def list_versions(*, json: Json = False) -> None:
    """List versions: which is published, size, when it was built from what."""
    with opened() as session:
        show(app.versions.list_versions(session), as_json=json, what="versions")


@versions.command()
def build(*, json: Json = False) -> int:
    """Build and publish a version from the scans that wait, without any request."""
    with opened() as session:
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
    with opened() as session, shown_progress() as progress:
        text = app.versions.roll_back(session, number, reason, progress)
    line(text)


@versions.command()
def rebuild(*, json: Json = False) -> int:
    """Build a version anew from the archive, without a base and without any request."""
    with opened() as session:
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
    with opened() as session, shown_progress() as progress:
        rows = app.maintenance.prune_files(session, days, progress, dry_run=dry_run)
    show(rows, as_json=json)
    if not json:
        line(f"{len(rows):,} files {'would be' if dry_run else 'were'} deleted.")


@program.command(rich_help_panel=WAREHOUSE)
def erase(
    identifier: Annotated[
        str, typer.Argument(help="Value that the records contain. Asked for if it is not given.")
    ] = "",
    *,
    reason: Reason,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before erasing.")] = False,
) -> int:
    """Erase all records that contain a value from scan files, versions and exports."""
    can_ask = sys.stdin.isatty()
    identifier = identifier or (typer.prompt("Identifier") if can_ask else "")

    def ask(rows: list[dict[str, Any]]) -> bool:
        show(rows)
        line(ERASED_TOO)
        return yes or (can_ask and typer.confirm("Erase these records for good?"))

    with opened() as session:
        rows = app.maintenance.erase_records(session, identifier, reason, ask, note)
    if rows is None:
        line(
            "Nothing was erased."
            if can_ask
            else "Nothing was erased: nobody can be asked. Use --yes."
        )
        return ExitCode.USAGE
    line(f"{len(rows):,} files were changed or deleted. Nothing contains the identifier any more.")
    return ExitCode.DONE


@program.command(rich_help_panel=WAREHOUSE)
def verify(*, json: Json = False) -> int:
    """Compare scan files, versions and copies of closed months with what was recorded."""
    with opened() as session:
        found = app.maintenance.verify_files(session)
    damaged = [{"message": str(error), "remedy": error.remedy} for error in found.damaged]
    if json:
        print_json({"files": found.files, "damaged": damaged})
    else:
        show(damaged, as_json=False)
        line(f"{found.files:,} files verified, {len(damaged):,} damaged.")
    return ExitCode.NEEDS_ATTENTION if damaged else ExitCode.DONE
