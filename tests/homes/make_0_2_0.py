"""Makes `tests/homes/0.2.0.tar.zst`, the home of release 0.2.0, with the code of that release.

Run it in a checkout of commit 49600c4, to which this folder was copied:

    python -m tests.homes.make_0_2_0 0.2.0.tar.zst

The home is made by four nights at four times: three syncs with changes, a mapping, a decision about
a break, a break that is gone, a close, a correction of the closed month, pruned scans, a held scan.
"""

import io
import os
import sys
import tarfile
import tempfile
import time
from datetime import UTC, date, datetime
from pathlib import Path

import sqlalchemy
import zstandard
from pipelines.app.sync import (  # type: ignore[import-untyped]  # of release 0.2.0
    ReadRequest,
    build_version,
    sync,
)

from pipelines.app import breaks, close, maintenance, mapping
from pipelines.app.results import LoggedProgress
from pipelines.app.session import AppSession, open_session
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.core.clock import Clock
from tests.homes.lists import lists
from tests.homes.service import Service, serving

NIGHTS = [datetime(2026, 10, day, 2, tzinfo=UTC) for day in (2, 8, 13, 14)]
ADDRESS = "http://127.0.0.1:1"  # in the archive; whoever opens the home writes another one
SETTINGS = """\
keep_versions = 2
[streams.partners]
limit = 3
[streams.usage]
limit = 20
[streams.billing]
limit = 6
"""
DECIDED = 1  # the night after which the mapping is accepted and a break is resolved
CLOSED = 2  # the night after which September is closed
DAYS = 8  # older scans are deleted at the end
OWNER = "kept-home:1:1.0"  # instead of the name of a machine
LEVEL = 19


class Shifted(Clock):
    """The clock of this machine, some seconds behind or ahead."""

    seconds = 0.0

    def time(self) -> float:
        return time.time() + self.seconds

    def set(self, now: datetime) -> None:
        self.seconds = now.timestamp() - time.time()


def main(target: Path) -> None:
    """Make the home and write it as an archive."""
    os.environ |= {"KEPT_SECRET": "kept", "LOGNAME": "ann"}
    clock = Shifted()
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home").prepare()
        with serving(Service({}, clock.time)) as service:
            _configure(home, service.url)
            with open_session(home, clock=clock) as session:
                _live(session, clock, service)
        text = home.connections_file.read_text()
        home.connections_file.write_text(text.replace(service.url, ADDRESS))
        target.write_bytes(_packed(home.root))


def _configure(home: Home, url: str) -> None:
    home.settings_file.write_text(SETTINGS)
    fields = {"base_url": url, "auth_url": url, "audience": "kept", "client_id": "kept"}
    add_connection(home.connections_file, "acme", {**fields, "secret": "KEPT_SECRET"})


def _live(session: AppSession, clock: Shifted, service: Service) -> None:
    """Let the nights pass; afterwards, delete the oldest scans."""
    for number, night in enumerate(NIGHTS, 1):
        clock.set(night)
        service.lists = lists(number)
        sync(session, [ReadRequest("acme", ())], LoggedProgress())
        if number == DECIDED:
            mapping.accept(session)
            build_version(session)
            _decide(session)
            build_version(session)
        if number == CLOSED:
            close.close_month(session, date(2026, 9, 1), "ann", "bob", "agreed")
            build_version(session)
    maintenance.prune_files(session, DAYS)
    with session.metadata.transaction() as db:
        for table in ("runs", "rate_limit_slots"):
            query = sqlalchemy.text(f"UPDATE {table} SET owner = :owner")
            db.execute(query, {"owner": OWNER})


def _decide(session: AppSession) -> None:
    """Resolve the break of September's usage that is on no bill."""
    verdict = breaks.Verdict("resolve", "agreed by mail")
    chosen = breaks.BreakFilter(rule="not_billed", month="2026-09")
    breaks.record_decisions(session, breaks.choose_breaks(session, chosen, verdict))


def _packed(folder: Path) -> bytes:
    """Return a folder as a compressed archive, without users and without lock files."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(folder, "home", filter=_cleaned)
    return zstandard.ZstdCompressor(LEVEL).compress(content.getvalue())


def _cleaned(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if "/locks/" in member.name:
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main(Path(sys.argv[1]))
