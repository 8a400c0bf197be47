"""A day in the ledger: what was read of it, and what it lacks in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Engine

from pipelines.errors import DayUnread
from pipelines.state import bases, journal, runs
from pipelines.state.journal import ManifestRow


@dataclass(frozen=True)
class Day:
    """A day of one connection, as a run asks for it."""

    run: str
    connection: str
    day: date
    streams: tuple[str, ...]


def archived(engine: Engine, asked: Day) -> dict[str, ManifestRow]:
    """Return the day's last manifest of each stream that has one."""
    connection, day = asked.connection, asked.day
    found = {stream: journal.manifests(engine, stream, connection, day) for stream in asked.streams}
    return {stream: manifests[-1] for stream, manifests in found.items() if manifests}


def left_behind(engine: Engine, asked: Day, since: datetime) -> dict[str, ManifestRow]:
    """Return what a run read that was killed, of each stream, where no run has ended after it.

    Also what a run reads that is still under way: no list is read twice at a time.
    """
    ended = runs.last_end(engine, asked.connection) or since
    latest = archived(engine, asked)
    return {stream: row for stream, row in latest.items() if row.written_at > max(since, ended)}


def unread(stream: str, day: date) -> DayUnread:
    """Return why a day that is over and was not read stays unknown."""
    return DayUnread(
        f"{stream} was not read on {day}, and the service tells only what is today: that day stays "
        "unknown. Choose days that were read, or today."
    )


def lacking(engine: Engine, asked: Day, holds: Mapping[str, str]) -> tuple[str, ...]:
    """Say of each stream why the day is not published; `holds` is what is, by connection/stream.

    A reading of this run that failed counts, though an earlier one of the day may be published.
    """
    there, base = archived(engine, asked), bases.newest(engine)
    words = []
    for stream in asked.streams:
        scan = journal.latest_scan(engine, asked.connection, stream, asked.day)
        newest = journal.newest(engine, stream, asked.connection)
        if scan and scan.error and (scan.run == asked.run or stream not in there):
            words.append(f"{stream}: {scan.error.removeprefix(f'{stream}: ')}")
        elif stream not in there:
            words.append(str(unread(stream, asked.day)))
        elif base and there[stream].file in base.manifests:
            words.append(
                f"{stream} of {asked.day} is in the base snapshot and its pages are dropped: its "
                "rows stay as they are, and cannot be folded again"
            )
        elif newest and holds.get(f"{asked.connection}/{stream}") != newest.file:
            words.append(f"{stream}: {newest.file} could not be folded (see that step)")
    return tuple(words)
