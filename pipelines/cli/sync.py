"""`sync`, `plan`, `status`, `runs`, `approve`."""

import getpass
from dataclasses import asdict

import typer

from pipelines.app import status as queries
from pipelines.app.decide import Verdict, decide_held_scan
from pipelines.app.plan import plan_sync
from pipelines.app.results import StreamResult, SyncResult
from pipelines.app.session import AppSession, open_session
from pipelines.app.sync import ReadRequest, build_version
from pipelines.app.sync import sync as run_sync
from pipelines.checks.check import Finding
from pipelines.cli import render
from pipelines.cli.progress import shown_progress
from pipelines.core.errors import ConfigurationError
from pipelines.publish.build import BuildResult


def requests_of(
    session: AppSession, connections: list[str] | None, streams: list[str] | None
) -> list[ReadRequest]:
    """Return one request for each connection that was named, or for all. Checks the streams."""
    known = session.settings.connections()
    for name in connections or ():
        session.settings.connection(name)
    chosen = [name for name in known if not connections or name in connections]
    if not streams:
        return [ReadRequest(name) for name in chosen]
    requests, unread = [], set(streams)
    for name in chosen:
        possible = {stream.name for stream in session.settings.streams_of(known[name])}
        wanted = tuple(stream for stream in streams if stream in possible)
        unread -= set(wanted)
        requests += [ReadRequest(name, wanted)] if wanted else []
    if unread:
        raise ConfigurationError(
            f"There is no stream `{', '.join(sorted(unread))}`. "
            f"Possible streams: {', '.join(session.settings.all_streams())}."
        )
    return requests


def sync(
    connections: list[str] | None, streams: list[str] | None, *, build: bool, as_json: bool
) -> None:
    """Read, build, publish; print what became of every list."""
    with open_session() as session:
        requests = requests_of(session, connections, streams)
        with shown_progress() as progress:
            result = run_sync(session, requests, progress, publish=build)
        if as_json:
            render.as_json(result)
        else:
            show_result(session, result)
    raise typer.Exit(int(result.exit_code))


def show_result(session: AppSession, result: SyncResult) -> None:
    """Print the table of lists, their proofs, what failed, and what was published."""
    streams = [stream for run in result.runs for stream in run.streams]
    render.table([_row(stream) for stream in streams])
    for stream in streams:
        failed = stream.scan_id is None
        prefix = f"{stream.connection}/{stream.stream}: " if failed else ""
        reused = " (scan of another run, new enough)" if stream.reused else ""
        render.line(f"{prefix}{stream.message}{reused}", style="red" if failed else "")
        if stream.remedy:
            render.line(f"  {stream.remedy}")
    show_findings(result.findings)
    show_published(session, result.build)


def _row(stream: StreamResult) -> dict[str, object]:
    return {
        "connection": stream.connection,
        "stream": stream.stream,
        "rows": stream.rows,
        "requests": stream.requests,
        "429s": stream.rate_limited,
        "proof": str(stream.state).upper() if stream.scan_id else "",
        "result": str(stream.state) if stream.scan_id is None else "read",
    }


def show_findings(findings: tuple[Finding, ...]) -> None:
    """Print findings, most severe first."""
    order = {"error": 0, "warning": 1, "info": 2}
    for finding in sorted(findings, key=lambda each: order[each.severity]):
        place = "/".join(part for part in (finding.connection, finding.stream) if part)
        render.line(f"{finding.severity}: {place}: {finding.message}", style="yellow")
        if finding.remedy:
            render.line(f"  {finding.remedy}")


def show_published(session: AppSession, built: BuildResult | None) -> None:
    """Print which version analysts see now and how to open it."""
    if built is None:
        render.line("No version was built. Run `partner-sync versions build`.")
    elif built.version is None:
        render.line("Nothing is published: no list has been loaded yet.", style="red")
    elif not built.is_new:
        render.line(f"Nothing new to publish. Analysts see version {built.version.number}.")
    else:
        render.line(f"Published version {built.version.number}. Open it with")
        render.line(f"  duckdb -readonly {session.home.link}")


def plan(connections: list[str] | None, *, as_json: bool) -> None:
    """Print requests and minutes of the next sync, as far as they are known."""
    with open_session() as session:
        for name in connections or ():
            session.settings.connection(name)
        rows = plan_sync(session, connections)
    if as_json:
        render.as_json(rows)
        return
    render.table([asdict(row) for row in rows])
    if any(row.requests is None for row in rows):
        render.line("A list without a scan has no known length. `partner-sync sync` finds out.")


def status(*, as_json: bool) -> None:
    """Print the published version, each list, and the open findings."""
    with open_session() as session:
        found = queries.status(session)
    if as_json:
        render.as_json(found)
        return
    if found.version is None:
        render.line("Nothing is published yet. Run `partner-sync sync`.")
    else:
        render.line(f"Published: version {found.version}, {found.link}")
    render.table([asdict(each) for each in found.lists])
    show_findings(found.findings)
    if not found.findings and found.version is not None:
        render.line("No open findings.")


def runs(limit: int, *, as_json: bool) -> None:
    """Print runs, newest first."""
    with open_session() as session:
        rows = queries.recent_runs(session, limit)
    if as_json:
        render.as_json(rows)
    elif rows:
        render.table(rows)
    else:
        render.line("There are no runs yet. Run `partner-sync sync`.")


def approve(connection: str, stream: str, reason: str, *, reject: bool, build: bool) -> None:
    """Decide about the held scan of a list; build a version unless it was rejected."""
    with open_session() as session:
        session.settings.connection(connection)
        verdict = Verdict(getpass.getuser(), reason, reject)
        text = decide_held_scan(session, connection, stream, verdict)
        render.line(text)
        if build and not reject:
            with shown_progress() as progress:
                built = build_version(session, progress)
            show_published(session, built)
