"""A run that failed, or that did not publish all it was to."""

from collections.abc import Iterator, Mapping

from pipelines.alerts.base import Alert, Finding, Scene
from pipelines.state import journal, runs, versions


def _look(scene: Scene) -> Iterator[Finding]:
    """Judge the last run of each connection, and what runs before it left unread of a stream."""
    version = versions.latest(scene.ledger)
    holds = version.holds if version else {}
    for connection in scene.connections:
        last = runs.last_judged(scene.ledger, connection)
        own = scene.streams(connection)
        wrong = {stream: _wrong(scene, connection, stream, holds) for stream in own}
        wrong = {stream: words for stream, words in wrong.items() if words}
        if last is None or (last[2] == "published" and not wrong):
            continue
        run, begun, outcome = last
        words = " ".join(f"{stream}: {each}." for stream, each in wrong.items())
        yield Finding(
            connection,
            f"The last run of {connection} (begun {begun:%Y-%m-%d %H:%M} UTC, {run[:8]}) ended as "
            f"{outcome}. {words or 'No list says why: see the log of that run.'}",
            f"Mend the cause, then `partner-sync sync --connection {connection}`; "
            "`partner-sync status` says how every list stands.",
            mark=",".join(sorted(wrong)) or outcome,
        )


def _wrong(scene: Scene, connection: str, stream: str, holds: Mapping[str, str]) -> str:
    """Say what is wrong with a stream's last reading; nothing where it is published."""
    scan = journal.latest_scan(scene.ledger, connection, stream)
    if scan and scan.status == "failed" and scan.error:
        return scan.error.removeprefix(f"{stream}: ").rstrip(".")
    newest = journal.newest(scene.ledger, stream, connection)
    if newest is None or newest.file == holds.get(f"{connection}/{stream}"):
        return ""
    waits = newest.file in {each.manifest for each in scene.waiting}
    return f"{newest.file} is {'held back for a word' if waits else 'read and not published'}"


FAILED_RUN = Alert(
    name="failed_run",
    means="What analysts open is as it was before, in the streams that failed; nothing is lost.",
    look=_look,
    calm=True,
)
