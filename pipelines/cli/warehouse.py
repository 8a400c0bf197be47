"""Commands for versions and files."""

import sys
from typing import Annotated, Any

import typer

from pipelines import app
from pipelines.cli.program import WAREHOUSE, Json, Reason, program, versions
from pipelines.cli.terminal import (
    confirm,
    line,
    opened,
    print_json,
    run_sync,
    show,
    show_table,
)
from pipelines.core.errors import ExitCode
from pipelines.core.text import counted

ERASED_TOO = (
    "All exports and reports in the home are deleted, too. Versions with such records are deleted: "
    "you can no longer roll back to them. Not erased: copies elsewhere, copies of closed months, "
    "and what the service sends again."
)


@versions.command("list")
def list_versions(*, _json: Json = False) -> None:
    """List versions with size, time and content; say which one is published."""
    with opened() as session:
        rows = app.versions.list_versions(session)
    show(rows, none="There are no versions yet. Run `partner-sync sync`.")


@versions.command()
def build(*, _json: Json = False) -> int:
    """Build and publish a version with the scans that are not published yet."""
    with opened() as session:
        return run_sync(session, [], app.sync.build_version)


@versions.command()
def rollback(
    number: Annotated[
        int | None,
        typer.Argument(help="Version to roll back to. Default: the newest with older data."),
    ] = None,
    *,
    reason: Reason,
) -> None:
    """Publish an older version again and hold the scans that it does not contain."""
    with opened() as session:
        text = app.versions.rollback(session, number, reason)
    line(text)


@versions.command()
def rebuild(*, _json: Json = False) -> int:
    """Build a version from the archive instead of the published version."""
    with opened() as session:
        return run_sync(session, [], app.versions.rebuild)


@program.command(rich_help_panel=WAREHOUSE)
def prune(
    *,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=36_500, help="Days to keep. Default: setting keep_days."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what is old.")] = False,
    _json: Json = False,
) -> None:
    """Delete old scan files and versions. The version that holds their rows is kept."""
    with opened() as session:
        rows = app.maintenance.prune_files(session, days, dry_run=dry_run)
    show(rows)
    line(f"{'To delete' if dry_run else 'Deleted'}: {counted(len(rows), 'file')}.")


@program.command(rich_help_panel=WAREHOUSE)
def erase(
    identifier: Annotated[
        str,
        typer.Argument(metavar="value", help="Value that the records contain. Default: ask."),
    ] = "",
    *,
    reason: Reason,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before erasing.")] = False,
) -> None:
    """Permanently delete every record that contains a value."""
    if not identifier and sys.stdin.isatty():
        identifier = typer.prompt("Value")

    def ask(rows: list[dict[str, Any]]) -> None:
        show_table(rows)
        line(ERASED_TOO)
        confirm("Permanently delete these records?", yes=yes)

    with opened() as session:
        rows = app.maintenance.erase(session, identifier, reason, ask)
    changed = counted(len(rows), "file")
    line(f"Changed or deleted: {changed}. No scan file, version, export or report contains it.")


@program.command(rich_help_panel=WAREHOUSE)
def verify(*, _json: Json = False) -> int:
    """Compare scan files, versions and copies of closed months with their digests."""
    with opened() as session:
        found = app.maintenance.verify_files(session)
    print_json(found)
    show_table(damaged := found["damaged"])
    line(f"{counted(found['files'], 'file')} verified, {len(damaged):,} damaged.")
    return ExitCode.NEEDS_ATTENTION if damaged else ExitCode.DONE
