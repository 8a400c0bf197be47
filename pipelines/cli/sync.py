"""`sync` and `plan`."""

from dataclasses import asdict
from typing import Any

import typer

from pipelines.app.plan import PlannedList, plan_sync
from pipelines.app.results import StreamResult, SyncResult
from pipelines.app.session import AppSession, open_session
from pipelines.app.sync import requests_for
from pipelines.app.sync import sync as run_sync
from pipelines.cli import render
from pipelines.cli.progress import shown_progress
from pipelines.publish.build import BuildResult

COLUMNS = {
    "connection": "connection",
    "stream": "stream",
    "rows": "rows",
    "requests": "requests",
    "rate_limited": "429s",
    "proof": "proof",
    "result": "result",
}


def sync(
    connections: list[str] | None, streams: list[str] | None, *, build: bool, as_json: bool
) -> None:
    """Read, build, publish; print what became of every list."""
    with open_session() as session:
        requests = requests_for(session, connections, streams)
        with shown_progress() as progress:
            result = run_sync(session, requests, progress, publish=build)
        if as_json:
            render.as_json(sync_values(session, result))
        else:
            show_sync(session, result)
    raise typer.Exit(int(result.exit_code))


def sync_values(session: AppSession, result: SyncResult) -> dict[str, object]:
    """Return a sync as `--json` prints it."""
    return {
        "exit_code": int(result.exit_code),
        "lists": [_row(stream, result.build) for stream in result.streams],
        "build": None if result.build is None else build_values(session, result.build),
        "findings": result.findings,
    }


def build_values(session: AppSession, built: BuildResult) -> dict[str, Any]:
    """Return a build as `--json` prints it; `version` is what analysts see now."""
    return {
        "version": built.version.number if built.version else None,
        "is_new": built.is_new,
        "file": str(session.home.link),
        "scans": [
            {name: value for name, value in asdict(loaded).items() if name != "findings"}
            for loaded in built.results
        ],
        "failed": built.failed,
    }


def show_sync(session: AppSession, result: SyncResult) -> None:
    """Print the table of lists, their proofs, what failed, and what was published."""
    render.table([_row(stream, result.build) for stream in result.streams], COLUMNS)
    for stream in result.streams:
        is_read = stream.scan_id is not None
        place = stream.connection if is_read else f"{stream.connection}/{stream.stream}:"
        render.line(f"{place} {stream.message}", style="" if is_read else "red")
        render.remedy(stream.remedy)
    render.findings(result.findings)
    show_build(session, result.build)


def _row(stream: StreamResult, built: BuildResult | None) -> dict[str, object]:
    return {
        "connection": stream.connection,
        "stream": stream.stream,
        "rows": stream.rows,
        "requests": stream.requests,
        "rate_limited": stream.rate_limited,
        "proof": str(stream.state).upper() if stream.scan_id else None,
        "result": _outcome(stream, built),
        "scan": stream.scan_id,
        "message": stream.message,
        "remedy": stream.remedy,
    }


def _outcome(stream: StreamResult, built: BuildResult | None) -> str:
    """Return where the scan of a list comes from, and what the build did with it."""
    if stream.scan_id is None:
        return str(stream.state)
    if built is not None and stream.scan_id in built.failed:
        return f"{stream.source}, not loaded"
    held = built is not None and any(
        loaded.scan_id == stream.scan_id and loaded.held for loaded in built.results
    )
    return f"{stream.source}, held" if held else str(stream.source)


def show_build(session: AppSession, built: BuildResult | None) -> None:
    """Print which version analysts see now and how to open it."""
    if built is None:
        render.line("No version was built. Run `partner-sync versions build`.")
        return
    for scan_id, reason in built.failed.items():
        render.line(f"Scan {scan_id} could not be loaded: {reason}", style="red")
    if built.version is None:
        render.line("Nothing is published: no list has been loaded yet.", style="red")
    elif not built.is_new:
        render.line(f"Nothing new to publish. Analysts see version {built.version.number}.")
    else:
        render.line(f"Published version {built.version.number}. Open it with")
        render.line(f"  duckdb -readonly {session.home.link}")


def plan(connections: list[str] | None, *, ask: bool, as_json: bool) -> None:
    """Print requests and time of the next sync, as far as they are known."""
    with open_session() as session:
        rows = plan_sync(session, connections, ask=ask)
    if as_json:
        render.as_json(rows)
        return
    render.table([_planned(row) for row in rows])
    render.line(_total(rows))
    if any(row.requests is None for row in rows):
        render.line(
            "The length of a list without a finished scan is not known. `partner-sync plan --ask` "
            "requests one page of it; `partner-sync sync` reads it."
        )


def _planned(row: PlannedList) -> dict[str, object]:
    values = asdict(row)
    bound = "at least " if values.pop("at_least") else ""
    for name in ("rows", "requests", "seconds"):
        value = values[name]
        values[name] = "not known" if value is None else f"{bound}{value:,}" if bound else value
    return values


def _total(rows: list[PlannedList]) -> str:
    known = [row for row in rows if row.requests is not None]
    if not known:
        return "How long the next sync takes is not known."
    is_bound = len(known) < len(rows) or any(row.at_least for row in known)
    requests = sum(row.requests or 0 for row in known)
    seconds = sum(row.seconds or 0 for row in known)
    bound = "at least " if is_bound else ""
    return f"The next sync takes {bound}{requests:,} requests, {bound}{seconds:,} seconds."
