"""Notes what a person says of a statement that was sent: partner-sync sends none.

Not here: how notes are kept (statements.sent_notes), and lists of them (statement).
"""

import os
from datetime import date, datetime, timedelta
from typing import Final

from pipelines.core.errors import ConfigurationError
from pipelines.core.person import name_of
from pipelines.core.text import printable
from pipelines.finance.statements.issues import Issue, all_issues, path_of, write_list
from pipelines.finance.statements.sent_notes import SentNote, SentNotes
from pipelines.metadata.locks import hold_lock
from pipelines.versions.stores import Stores

# A day begins so much earlier than in UTC in some place, and ends so much later in another one.
EARLIEST: Final = timedelta(hours=14)
LATEST: Final = timedelta(hours=12)
LONGEST: Final = 200  # characters of a recipient


def note_sent(
    stores: Stores, asked: tuple[date, str, str], number: int, to: str, day: date | None = None
) -> None:
    """Note that a statement was sent on a day (None: today in UTC) to a recipient.

    `asked`: month, partner (identifier or name), connection (empty: any). Nothing is written if
    there is a note that says the same. Raises ConfigurationError for a statement that is not there,
    for a day that has not come or is before it was written, and without a recipient.
    """
    to = to.strip()
    if not to or len(to) > LONGEST:
        raise ConfigurationError(
            f"--to has {len(to):,} characters. Nothing was noted.",
            f"Name the recipient in 1 to {LONGEST} characters, such as an address.",
        )
    # `erase` holds the same lock: nothing is noted of a statement that it deletes.
    with hold_lock(stores.metadata.locks, "export"):
        issue = _find(stores, asked, number)
        now = stores.clock.utc_now()
        day = day or now.date()
        _require_possible(issue, day, now)
        note = SentNote(day, to, now, name_of(os.getuid()))
        SentNotes(stores).add(path_of(stores, issue), note)
        write_list(stores)


def _find(stores: Stores, asked: tuple[date, str, str], number: int) -> Issue:
    """Return the statement that is asked for. Raises ConfigurationError for none, or several."""
    month, partner, connection = asked
    issues, _problems = all_issues(stores)
    written = []
    for issue in issues:
        is_month = issue.month == f"{month:%Y-%m}"
        is_connection = connection in ("", issue.connection)
        if is_month and is_connection and partner in (issue.partner, issue.name):
            written.append(issue)
    # A name may be the identifier of another partner.
    exact = [issue for issue in written if issue.partner == partner]
    written = exact or written
    found = [issue for issue in written if issue.number == number]
    what = f"{printable(partner)}, {month:%Y-%m}"
    if not found:
        numbers = ", ".join(sorted({str(issue.number) for issue in written})) or "none"
        raise ConfigurationError(
            f"There is no statement {number} of {what}: it was never written, or was erased. "
            "Nothing was noted.",
            f"Its numbers: {numbers}. All statements: `partner-sync statement --list`.",
        )
    if len(found) > 1:
        known = ", ".join(f"{printable(each.partner, 40)} of {each.connection}" for each in found)
        raise ConfigurationError(
            f"{len(found)} partners have a statement {number} of {what}. Nothing was noted.",
            f"Name one by its identifier, and its connection by --connection: {known}.",
        )
    return found[0]


def _require_possible(issue: Issue, day: date, now: datetime) -> None:
    """Raise ConfigurationError for a day on which nobody can have sent a statement."""
    if day > (now + EARLIEST).date():
        raise ConfigurationError(
            f"{day} is in the future. Nothing was noted.",
            "Write the day on which it was sent, such as `--on 2026-10-05`.",
        )
    if day < (issue.written_at - LATEST).date():
        raise ConfigurationError(
            f"Statement {issue.number} was written on {issue.written_at:%Y-%m-%d}, after {day}. "
            "Nothing was noted.",
            "Correct the day, or the number: `partner-sync statement --list`.",
        )
