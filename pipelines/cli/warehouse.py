"""Commands for versions and files."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from pipelines import app, finance
from pipelines.cli import program
from pipelines.cli.outcomes import run_build
from pipelines.cli.terminal import confirm, line, open_home, show
from pipelines.core.errors import ExitCode
from pipelines.core.text import counted

if TYPE_CHECKING:
    from pipelines.app.session import AppSession
    from pipelines.versions.search import SearchResult

# `erase` shows no more: a value can be in every scan file of a list.
MOST_FILES = 20
ERASED_TOO = (
    "All exports and reports in the home are deleted, too, and statements for partners with the "
    "value. Versions with such records are deleted: you can no longer roll back to them. Not "
    "erased: copies elsewhere, copies of closed months, and what the service sends again."
)
KEPT_COPIES = (
    "Not erased: copies of closed months that contain the value. A signed copy never changes, or "
    "nobody could verify it. It has names only where somebody wrote them. To remove one, delete "
    "its folder in closes/: its month can then be neither verified nor compared."
)
KEPT_REMARKS = (
    "Not erased: notes of closes and reasons of decisions that contain the value. They are in the "
    "metadata database, in books, in versions and in reports that are written from now on."
)
KEPT_CONFIGURATION = (
    "Not erased: your configuration that contains the value. Books and copies of closed months "
    "that are written from now on have mapping.toml. Take the value out of it, then run "
    "`partner-sync reconcile`."
)
KEPT_OWN = (
    "Not erased: your own books that contain the value, or that cannot be searched. They are your "
    "files, so partner-sync changes none of them. Take it out of them yourself."
)


@program.versions.command("list")
def list_versions(*, _json: program.Json = False) -> None:
    """List versions with size, time and content; say which one is published."""
    rows = app.maintenance.list_versions(open_home())
    show(rows, if_empty="There are no versions yet. Run `partner-sync sync`.")


@program.versions.command()
def build(*, _json: program.Json = False) -> int:
    """Build and publish a version with the scans that are not published yet."""
    return run_build(open_home())


@program.versions.command()
def rollback(
    number: Annotated[
        int | None, Argument(help="Version to roll back to. Default: the newest with older data.")
    ] = None,
    *,
    reason: program.Reason,
) -> None:
    """Publish an older version again and hold the scans that it does not contain."""
    line(app.maintenance.rollback(open_home(), number, reason))


@program.versions.command()
def rebuild(*, _json: program.Json = False) -> int:
    """Build a version from the archive instead of the published version."""
    return run_build(open_home(), app.nightly.rebuild_with_books)


@program.command(rich_help_panel=program.WAREHOUSE)
def prune(
    *,
    days: Annotated[
        int | None, Option(min=1, max=36_500, help="Days to keep. Default: setting keep_days.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show what is old.")] = False,
    force: Annotated[bool, Option("--force", help="Delete even most of the scan files.")] = False,
    _json: program.Json = False,
) -> None:
    """Delete old scan files and versions. The version that holds their rows is kept."""
    rows = app.maintenance.prune_files(open_home(), days, dry_run=dry_run, force=force)
    show(rows)
    done = "To delete" if dry_run else "Deleted"
    line(f"{done}: {counted(len(rows), 'file')}.")


@program.command(rich_help_panel=program.WAREHOUSE)
def erase(
    identifier: Annotated[
        str, Argument(metavar="value", help="Value that the records contain. Default: ask.")
    ] = "",
    *,
    reason: program.Reason,
    yes: Annotated[bool, Option("--yes", help="Do not ask before erasing.")] = False,
    force: Annotated[
        bool, Option("--force", help="Erase also a short value, or more than 1 % of a list.")
    ] = False,
) -> None:
    """Permanently delete every record that contains a value."""
    if not identifier and sys.stdin.isatty():
        identifier = typer.prompt("Value")
    request = app.maintenance.ErasureRequest(identifier, reason, force)

    def ask() -> None:
        confirm("Permanently delete these records?", yes=yes)

    session = open_home()
    try:
        rows = app.maintenance.erase_records(session, request, _show_result, ask)
    except app.maintenance.NothingFound:
        _show_kept(session, identifier)
        raise
    files = counted(len(rows), "file")
    line(f"Changed or deleted: {files}. No record contains it any more.")
    _show_kept(session, identifier)


def _show_kept(session: "AppSession", identifier: str) -> None:
    """Name what contains a value and is not erased, and say why."""
    kept = (
        (KEPT_COPIES, app.maintenance.copies_with),
        (KEPT_REMARKS, app.maintenance.remarks_with),
        (KEPT_CONFIGURATION, app.maintenance.configuration_with),
        (KEPT_OWN, finance.own_check.sources_with),
    )
    for text, find in kept:
        rows = find(session, identifier)
        if rows:
            line(text, style="yellow")
            show(rows)


def _show_result(result: "SearchResult") -> None:
    """Print which lists and files contain a value, and its other spellings."""
    show(result.lists())
    show([file.row() for file in result.files[:MOST_FILES]])
    if len(result.files) > MOST_FILES:
        line(f"… and {counted(len(result.files) - MOST_FILES, 'more file')}.")
    if result.beside:
        line("Also in what finance keeps, which is deleted or made again without it:")
        show(result.beside)
    if result.files or result.beside:
        line(ERASED_TOO)
    if result.hints:
        line("Not erased, other spellings of the value. Erase each by itself if it must go, too:")
        show(result.hints)


@program.command(rich_help_panel=program.WAREHOUSE)
def catalog(
    file: Annotated[Path, Argument(help="File to write, such as all.duckdb.")],
    *,
    homes: Annotated[
        Path, Option(envvar="PARTNER_SYNC_HOMES", help="Folder that holds the homes.")
    ] = Path(),
    _json: program.Json = False,
) -> None:
    """Write a small DuckDB file whose views read what all homes have published."""
    show(app.catalog.write_catalog(file, homes))
    line(f"Open it with `duckdb -readonly {shlex.quote(str(file))}`.")


@program.command(rich_help_panel=program.WAREHOUSE)
def pull(
    folder: Annotated[
        Path | None, Argument(help="Folder for the files. Default: the home.", show_default=False)
    ] = None,
    *,
    bucket: Annotated[
        str | None, Option("--from", help="Bucket, as s3://bucket/prefix. Default: as before.")
    ] = None,
    endpoint: Annotated[
        str | None,
        Option(help="Address of the service with the bucket. Default: as before, or AWS."),
    ] = None,
    _json: program.Json = False,
) -> None:
    """Bring what is published from a bucket to this machine. Needs no home."""
    show(app.pull.pull(folder or app.pull.default_folder(), bucket, endpoint))


@program.command(rich_help_panel=program.WAREHOUSE)
def verify(*, _json: program.Json = False) -> int:
    """Compare scan files, versions and copies of closed months with their digests."""
    verified = app.maintenance.verify_files(open_home())
    damaged = verified["damaged"]
    show(damaged, json_value=verified)
    line(f"{counted(verified['files'], 'file')} verified, {len(damaged):,} damaged.")
    return ExitCode.NEEDS_ATTENTION if damaged else ExitCode.DONE
