"""Tells people of findings: new ones, those still open after a day, and that they have cleared.

Finance gets a summary of each new version, where setting `notify_summary` says so.
"""

import logging
import os
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any, Final

import apprise

from pipelines.app.session import AppSession
from pipelines.core.alike import About, said_once
from pipelines.core.finding import Severity
from pipelines.core.text import counted, printable
from pipelines.finance.reports.queries import Figures
from pipelines.finance.reports.verdicts import judge
from pipelines.metadata.findings import due_findings, open_severities
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.tables import FindingRow, Notification
from pipelines.warehouse.duckdb_file import Row

REPEAT: Final = timedelta(hours=24)
MOST_LINES: Final = 20
TEST: Final = "This is a test. Findings of {home} are sent here."
SUMMARY: Final = (
    "{currency}: used {used:,f}, billed {billed:,f}, credit notes {credit_notes:,f}, difference "
    "{difference:+,f}, open breaks {open_breaks:,}"
)
OWN_BOOKS: Final = "Own books {source}: {counted}, open breaks {open_breaks:,}"
# Apprise would log parts of a URL, which has a password or token in it.
logging.getLogger("apprise").setLevel(logging.CRITICAL)


def notify_findings(session: AppSession) -> None:
    """Send what is due to every channel; what no channel accepts is sent again the next time.

    A failure is recorded, and a check finds it. Raises LockHeld, StorageFailed.
    """
    if not session.settings.notify:
        return
    # Else two processes would send the same findings.
    with hold_lock(session.metadata.locks, "notify"):
        now = session.clock.utc_now()
        with session.metadata.transaction() as db:
            due = list(due_findings(db, now, REPEAT))
            severities = open_severities(db)
        if not due:
            return
        title = _title(due, len(severities))
        sent = _send(session, session.settings.notify, title, _text(due), _kind(severities))
        if not any(row["sent"] for row in sent):
            return
        with session.metadata.transaction() as db:
            for finding, _event in due:
                # One that comes back later is due at once, so its time is forgotten.
                finding.notified_at = None if finding.cleared_at else now
                db.merge(finding)


def _title(due: Sequence[tuple[FindingRow, str]], still_open: int) -> str:
    """Return how many findings are new, cleared and open."""
    events = [event for _finding, event in due]
    counts = [f"{events.count(event)} {event}" for event in ("new", "cleared") if event in events]
    counts.append(f"{still_open} open")
    return f"partner-sync: {', '.join(counts)} findings"


def _kind(severities: Collection[str]) -> apprise.NotifyType:
    """Return how a channel shows a message, by the severities of open findings."""
    if not severities:
        return apprise.NotifyType.SUCCESS
    if Severity.ERROR in severities:
        return apprise.NotifyType.FAILURE
    return apprise.NotifyType.WARNING


def _text(due: Sequence[tuple[FindingRow, str]]) -> str:
    """Return a line for each message, and how many more there are."""
    lines = []
    messages = list[About]()
    for finding, event in due:
        remedy = "" if event == "cleared" else finding.remedy
        about = About(finding.connection, finding.stream, finding.message, remedy, event)
        messages.append(about)
    for places, about in said_once(messages):
        text = f"{about.message} {about.remedy}".strip()
        lines.append(f"{about.kind}: {places or 'warehouse'}: {printable(text)}")
    shown = lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        shown.append(f"and {len(lines) - MOST_LINES} more")
    return "\n".join(shown)


def send_test(session: AppSession) -> list[Row]:
    """Send a test to every channel; return a row for each."""
    channels = dict.fromkeys((*session.settings.notify, *session.settings.notify_summary))
    return _send(session, channels, "partner-sync: test", TEST.format(home=session.home.root))


def notify_summary(session: AppSession, figures: Figures) -> None:
    """Send the totals of a version. A failure to send is recorded, and a check finds it."""
    verdicts = judge(figures)
    lines = verdicts.why_not_proven()
    for total in verdicts.totals():
        total["currency"] = total["currency"] or "No currency"
        lines.append(SUMMARY.format(**total))
    for source in figures.tables["own_sources"]:
        if source["evaluated"]:  # else it is among the reasons above
            rows = counted(source["rows"], "row")
            lines.append(OWN_BOOKS.format(**source, counted=rows))
    if not verdicts.currencies:
        lines.append(verdicts.problem)
    title = f"partner-sync: usage and billing, version {verdicts.version}"
    _send(session, session.settings.notify_summary, title, "\n".join(map(printable, lines)))


def _send(
    session: AppSession,
    channels: Iterable[str],
    title: str,
    text: str,
    kind: apprise.NotifyType = apprise.NotifyType.INFO,
) -> list[Row]:
    """Send a message to channels, record it, and return a row for each."""
    text = session.redactor.clean(text)
    message = {"title": title, "body": text, "notify_type": kind}
    rows = list[Row]()
    for name in channels:
        error = _send_to(session, name, message)
        sent_at = session.clock.utc_now()
        with session.metadata.transaction() as db:
            db.add(Notification(sent_at=sent_at, channel=name, text=text, error=error))
        rows.append({"channel": name, "sent": error is None, "message": error or ""})
    return rows


def _send_to(session: AppSession, name: str, message: dict[str, Any]) -> str | None:
    """Return why a message could not be sent to the URL in a variable; None if it was."""
    url = os.environ.get(name)
    if not url:
        return f"The environment variable {name} is not set."
    session.redactor.add(url)
    channel = apprise.Apprise()
    if not channel.add(url):
        return f"The environment variable {name} holds no URL that Apprise knows."
    is_sent = channel.notify(**message, body_format=apprise.NotifyFormat.TEXT)
    return None if is_sent else f"The service behind {name} did not accept the message."
