"""Homes that earlier releases made are read, and upgraded, by the code of now."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipelines.app import maintenance
from pipelines.app.nightly import build_with_books, rebuild_with_books, sync
from pipelines.app.results import LoggedProgress, ReadRequest
from pipelines.app.session import AppSession, open_session
from pipelines.cli.main import program
from pipelines.config.home import Home
from pipelines.core.clock import Clock
from pipelines.core.errors import ExitCode
from pipelines.metadata.runs import Outcome
from pipelines.warehouse import formats
from tests.archive.test_format import add_member
from tests.homes import rows
from tests.homes.kept import Rows, held, lost, unpacked
from tests.homes.lists import lists
from tests.homes.service import Service, serving
from tests.versions.test_formats import widen

FIRST_OF_NOW = datetime(2026, 10, 16, 2, tzinfo=UTC).timestamp()
READERS = {  # command, with a part of what it says
    "status": "acme/billing",
    "breaks": "Run `partner-sync reconcile`",  # until then there are no books
    "close list": "Run `partner-sync reconcile`",
    "versions list": "(checkpoint)",
    "report": "Run `partner-sync reconcile`",
    "verify": "0 damaged",
    "mapping propose": "lines[].usageId",
    "export parquet": "billing__lines.parquet",
    "trace record acme usage u-005": '"amount": "9.75"',
    "trace month 000000000000000000000004 2026-09": "Run `partner-sync reconcile`",
}
# What ann and bob signed: usage and bills of September by currency, as both sides spell it.
# One record of usage changed from 7.50 to 9.75 since.
SIGNED = [("EUR", Decimal("88.50"), Decimal("85.00")), ("JPY", Decimal(3150), Decimal(3150))]
SUMS = """
SELECT upper(summary.currency), sum(summary.used_amount), sum(summary.billed_amount)
FROM reconciliation.summary AS summary
WHERE summary.month = DATE '2026-09-01' OR summary.month IS NULL
GROUP BY upper(summary.currency)
ORDER BY ALL
"""
CORRECTIONS = "SELECT id, sum(difference) FROM reconciliation.corrections GROUP BY id"
STATE = "SELECT state, version, changed_records FROM reconciliation.closes"
# A break that was gone already, and one about which a person decided.
BREAKS = """
SELECT breaks.subject, breaks.gone_at::DATE, breaks.reason
FROM reconciliation.breaks AS breaks
WHERE breaks.gone_at < TIMESTAMPTZ '2026-10-10 00:00:00Z' OR breaks.resolved_by = 'ann'
ORDER BY ALL
"""
OLD_BREAKS = [
    ("000000000000000000000002|2026-09-01|EUR|missing on the bill", None, "agreed by mail"),
    ("u-004", date(2026, 10, 8), None),
]


class Later(Clock):
    """The clock on the night after the kept home was made; it does not move."""

    def time(self) -> float:
        return FIRST_OF_NOW


@dataclass(frozen=True)
class Kept:
    """A kept home, and the service that it reads."""

    home: Home
    service: Service

    def open(self) -> AbstractContextManager[AppSession]:
        return open_session(self.home, clock=Later())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return rows(self.home, query)

    def command(self, arguments: str) -> str:
        """Run a command that finds what it is about, or needs attention."""
        environment = {"PARTNER_SYNC_HOME": str(self.home.root), "TERM": "dumb"}
        result = CliRunner().invoke(program.root, arguments.split(), env=environment)
        codes = {ExitCode.DONE, ExitCode.NEEDS_ATTENTION}
        assert result.exit_code in codes or "partner-sync reconcile" in result.output, result.output
        assert "Traceback" not in result.output
        return result.output


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    monkeypatch.setenv("KEPT_SECRET", "kept")
    with serving(Service(lists(5), Later().time)) as service:
        home = unpacked("0.2.0.tar.zst", tmp_path, service)
        yield Kept(home, service)


def test_every_command_reads_a_home_of_0_2_0(kept: Kept) -> None:
    for command, expected in READERS.items():
        assert expected in kept.command(command)


@pytest.mark.long
def test_a_home_of_0_2_0_is_upgraded_and_loses_no_value(kept: Kept) -> None:
    before = held(kept.home.link)
    with kept.open() as session:
        upgraded = build_with_books(session)
        assert upgraded.is_new  # although no scan is
        assert kept.rows("SELECT number FROM meta.format") == [(formats.newest(),)]
        assert not build_with_books(session).is_new
        require_same(kept, before)
        result = sync(session, [ReadRequest("acme", ())], LoggedProgress())
        assert {each.state for each in result.streams} == {Outcome.COMPLETE}
        assert result.build
        assert result.build.is_new
        require_same(kept, before)
        assert kept.rows("SELECT count(*) FROM current.usage") == [(49,)]
        if upgraded.version:
            maintenance.rollback(session, upgraded.version.number, "a test")
        require_same(kept, before)
        assert kept.rows("SELECT count(*) FROM current.usage") == [(48,)]
        assert rebuild_with_books(session).is_new
        require_same(kept, before)
    for command in ("verify", "trace record acme usage u-005"):
        assert READERS[command] in kept.command(command)
    assert "outdated" in kept.command("close list")


@pytest.mark.long
def test_what_a_later_release_adds_keeps_a_home_of_0_2_0_readable(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = held(kept.home.link)
    add_member(monkeypatch)  # to the proof in a scan file
    monkeypatch.setattr(formats, "STEPS", (*formats.STEPS, widen))  # a column and a table
    for command in ("status", "verify", "trace record acme usage u-005"):
        assert READERS[command] in kept.command(command)
    with kept.open() as session:
        assert build_with_books(session).is_new
        assert kept.rows("SELECT DISTINCT later_figure FROM meta.loads") == [(None,)]
        require_same(kept, before)
        assert rebuild_with_books(session).is_new  # which reads every scan file
        require_same(kept, before)
        result = sync(session, [ReadRequest("acme")], LoggedProgress())
        assert {each.state for each in result.streams} == {Outcome.COMPLETE}
        require_same(kept, before)


def require_same(kept: Kept, before: dict[str, Rows]) -> None:
    """Require every old value of the rows, and what was signed, decided and corrected."""
    assert lost(before, held(kept.home.link)) == []
    assert kept.rows(SUMS) == SIGNED
    assert ("u-005", Decimal("2.25")) in kept.rows(CORRECTIONS)
    assert kept.rows(BREAKS) == OLD_BREAKS


@pytest.mark.long
def test_a_signed_month_gets_no_correction_because_it_is_read_otherwise(kept: Kept) -> None:
    with kept.open() as session:
        build_with_books(session)
    assert kept.rows(CORRECTIONS) == [("u-005", Decimal("2.25"))]
    assert kept.rows(STATE) == [("outdated", 4, 1)]
