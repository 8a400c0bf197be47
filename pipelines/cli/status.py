"""`status` and `runs`."""

from dataclasses import asdict

import typer

from pipelines.app import status as queries
from pipelines.app.session import open_session
from pipelines.cli import render


def status(*, as_json: bool) -> None:
    """Print the published version, each list, and what needs attention."""
    with open_session() as session:
        found = queries.status(session)
    if as_json:
        render.as_json(asdict(found) | {"findings": found.findings})
    else:
        _show(found)
    raise typer.Exit(int(found.exit_code))


def _show(found: queries.Status) -> None:
    if found.version is None:
        render.line("Nothing is published yet. Run `partner-sync sync`.")
    else:
        render.line(f"Published: version {found.version}, {found.file}")
    render.table([asdict(each) for each in found.lists])
    render.findings(found.findings)
    for reason in found.unknown:
        render.line(f"not known: {reason}", style="yellow")
    if found.version is not None and not found.findings and not found.unknown:
        render.line(f"All {found.checks} checks passed.")


def runs(limit: int, *, as_json: bool) -> None:
    """Print runs, newest first."""
    with open_session() as session:
        rows = queries.recent_runs(session, limit)
    if as_json:
        render.as_json(rows)
    elif rows:
        headings = {name: name.replace("_", " ") for name in rows[0]}
        render.table(rows, headings | {"rate_limited": "429s"})
    else:
        render.line("There are no runs yet. Run `partner-sync sync`.")
