"""Here: runs a sync, a build or a reconciliation, and prints its result; prints what `status` says.

Not here: how a line or a table is printed (terminal).
"""

import gc
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich import progress

from pipelines import app, finance
from pipelines.cli.terminal import ERR, line, show, show_error, shown
from pipelines.core.alike import About, said_once
from pipelines.core.errors import ExitCode
from pipelines.core.finding import Finding, Severity
from pipelines.core.text import counted, printable

SYNC_COLUMNS = (
    "connection", "stream", "rows", "new", "changed", "deleted", "requests", "rate_limited",
    "proof", "result",
)  # fmt: skip


MOST_BARS = 12  # of lists; of more, one bar shows all together


@contextmanager
def _shown_progress(lists: int) -> Iterator["app.results.OnProgress"]:
    """Show a bar for each list on stderr until the block ends; without a terminal, log lines."""
    if not ERR.is_terminal:
        yield app.results.LoggedProgress()
        return
    columns = (
        progress.TextColumn("{task.description:<20}", markup=False),
        progress.BarColumn(bar_width=20),
        progress.TextColumn("{task.completed:>9,} rows {task.fields[requests]:>6,} requests"),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=ERR, transient=True) as bars:
        if lists > MOST_BARS:
            task = bars.add_task("", requests=0)

            def advance_all(name: str, rows: int, requests: int, expected_rows: int | None) -> None:
                bars.update(
                    task, description=name, completed=rows, total=expected_rows, requests=requests
                )

            yield app.results.TotalProgress(advance_all, lists)
            return
        tasks = dict[str, progress.TaskID]()

        def advance(stream: str, rows: int, requests: int, expected_rows: int | None) -> None:
            if stream not in tasks:
                tasks[stream] = bars.add_task(printable(stream), requests=0)
            total = expected_rows
            # A list can be longer than it was when it was read last.
            if total is not None:
                total = max(total, rows)
            bars.update(tasks[stream], completed=rows, total=total, requests=requests)

        yield advance


def run_sync(
    session: "app.session.AppSession",
    requests: Sequence["app.results.ReadRequest"],
    *,
    no_build: bool = False,
) -> int:
    """Read lists, publish what was read, print both; return the exit code."""
    # What was imported stays: the search for cycles need not visit it for each page.
    gc.freeze()
    lists = sum(len(request.lists(session)) for request in requests)
    with _shown_progress(lists) as on_progress:
        result = app.nightly.sync(session, requests, on_progress, no_build=no_build)
    values = result.values(str(session.home.link))
    show(values["lists"], SYNC_COLUMNS, json_value=values)
    _show_streams(result.streams)
    _show_findings(result.findings)
    _show_build(values["build"])
    return _show_end(result)


def run_build(
    session: "app.session.AppSession", make: "app.nightly.MakeVersion | None" = None
) -> int:
    """Publish what waits, by `make` (default: a build), and print it; return the exit code."""
    result = app.nightly.after_reading(session, make or app.nightly.build_with_books)
    values = result.values(str(session.home.link))
    show(values["scans"], json_value=values)
    _show_findings(result.findings)
    _show_build(values)
    return _show_end(result)


def _show_end(result: "app.results.SyncResult") -> int:
    """Print the report, and what failed after publishing; return the exit code."""
    if result.report:
        line(f"Report: {result.report}")
    for problem in result.problems:
        show_error(problem)
    return int(result.exit_code)


def _show_streams(streams: Sequence["app.results.StreamResult"]) -> None:
    """Print the proof of each list that was read, then why others were not."""
    for stream in streams:
        # The sentence of a proof names the list.
        if stream.scan:
            line(f"{stream.connection} {stream.message}", stream.remedy)
    failed = [stream.about() for stream in streams if not stream.scan]
    for places, about in said_once(failed):
        line(f"{places}: {about.message}", about.remedy, style="red")


def show_and_reconcile(session: "app.session.AppSession", text: str) -> int:
    """Print what was changed, then make books with it; return the exit code."""
    line(text)
    return run_reconcile(session)


def run_reconcile(session: "app.session.AppSession", *, again: bool = False) -> int:
    """Make books of the published version, print which are published; return the exit code."""
    made = finance.books.make_books(session, again=again)
    if made.books is None:
        show([], json_value={"books": None, "version": None, "is_new": False, "file": None})
        line("Nothing is published yet, so there are no books. Run `partner-sync sync`.")
        return ExitCode.NOTHING_PUBLISHED
    document = {
        "books": made.books.number,
        "version": made.books.version,
        "is_new": made.is_new,
        "file": str(session.home.books_link),
    }
    show([], json_value=document)
    if made.is_new:
        line(f"Published books {made.books}: {session.home.books_link}")
    else:
        line(f"Nothing new. Books {made.books} are published.")
    return ExitCode.DONE


def _show_findings(findings: Sequence[Finding]) -> None:
    """Print findings, errors first."""
    for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO):
        style = "" if severity is Severity.INFO else "yellow"
        messages = [_about(finding) for finding in findings if finding.severity is severity]
        for places, about in said_once(messages):
            subject = f" {places}:" if places else ""
            line(f"{severity}:{subject} {about.message}", about.remedy, style=style)


def _about(finding: Finding) -> About:
    return About(finding.connection, finding.stream, finding.message, finding.remedy, finding.code)


def _show_build(built: dict[str, Any] | None) -> None:
    """Print what became of a version, as `--json` does; None: none was asked for."""
    if built is None:
        line("No version was built. Run `partner-sync versions build`.")
        return
    for scan_id, reason in built["failed"].items():
        line(f"Scan {scan_id} could not be loaded: {reason}", style="red")
    if built["version"] is None:
        line("Nothing is published: no list has been loaded yet.", style="red")
    elif built["is_new"]:
        line(f"Published version {built['version']}. Open it with")
        line(f"  duckdb -readonly {shlex.quote(built['file'])}")
    else:
        line(f"Nothing new to publish. Analysts see version {built['version']}.")


def show_status(status: dict[str, Any]) -> None:
    """Print the published version, each list, and what needs attention."""
    version = status["version"]
    if version is None:
        line("Nothing is published yet. Run `partner-sync sync`.")
    else:
        line(f"Published: version {version}, {status['file']}")
    show(status["lists"], json_value=status)
    _show_findings(status["findings"])
    for reason in status["unknown"]:
        line(f"not known: {reason}", style="yellow")
    for erasure in status["erasures"]:
        records = counted(erasure["records"], "record")
        files = counted(erasure["files"], "file")
        erased_at = shown(erasure["erased_at"])
        line(f"Erased: {records} in {files}, by {erasure['person']} at {erased_at}.")
    line(app.format_numbers.sentence(status["formats"]))
    needs_attention = status["findings"] or status["unknown"]
    if version is not None and not needs_attention:
        line(f"All {status['checks']} checks passed.")
