"""A night with a wrong clock, then the right one: nothing is deleted, and the next sync is good."""

from datetime import UTC, datetime, timedelta

import pytest

from pipelines.app.checkup import findings_of, run_checks
from pipelines.app.maintenance import prune_files
from pipelines.app.nightly import sync
from pipelines.app.results import LoggedProgress, ReadRequest, StreamResult, SyncResult
from pipelines.config.home import Home
from pipelines.core.clock import Clock
from pipelines.core.errors import ConfigurationError
from pipelines.metadata.runs import Outcome
from pipelines.metadata.tables import Scan, VersionRow
from tests.homes import opened, rows

REQUEST = ReadRequest("acme", ("partners",))


class WrongClock(Clock):
    """The clock of this machine, ahead by some hours, or behind."""

    def __init__(self, hours: float) -> None:
        self._seconds = hours * 3600

    def time(self) -> float:
        return super().time() + self._seconds


def sync_at(home: Home, hours: float) -> SyncResult:
    with opened(home, clock=WrongClock(hours)) as session:
        return sync(session, [REQUEST], LoggedProgress())


def files(home: Home) -> set[str]:
    return {each.name for folder in (home.archive, home.versions) for each in folder.rglob("*")}


def prune_at(home: Home, hours: float) -> None:
    with opened(home, clock=WrongClock(hours)) as session:
        assert prune_files(session, 400) == []


def found(home: Home) -> set[str]:
    """Return the codes of what a right clock finds."""
    with opened(home) as session:
        return {each.code for each in findings_of(run_checks(session))}


def assert_good(result: SyncResult, began: datetime) -> None:
    """Check that a sync by a right clock is proven, of now, and finds nothing of clocks."""
    (partners,) = result.streams
    assert (partners.state, partners.source) == (Outcome.COMPLETE, "read")
    assert partners.scan
    proof = partners.scan.completeness
    assert began <= proof.started_at <= proof.ended_at <= datetime.now(UTC)
    assert "clock" not in partners.message
    assert {each.code for each in result.findings} == {"not_reconciled"}


def assert_names_both(partners: StreamResult, hours: float) -> None:
    now = datetime.now(UTC)
    assert partners.scan
    assert f"{now:%Y-%m-%d}" in partners.message
    assert f"({now + timedelta(hours=hours):%Y-%m-%d}" in partners.message
    assert "by the service's clock" in partners.message


@pytest.mark.long
@pytest.mark.parametrize("hours", [10, -2, 500 * 24, 5 * 365 * 24])
def test_a_night_with_a_wrong_clock(synced: Home, hours: float) -> None:
    before = files(synced)
    (partners,) = sync_at(synced, hours).streams
    if abs(hours) < 24:
        assert partners.state == Outcome.COMPLETE
        assert_names_both(partners, hours)
        ((latest,),) = rows(synced, "SELECT max(greatest(ended_at, valid_time)) FROM meta.loads")
        assert latest <= datetime.now(UTC)
    else:
        assert partners.state == Outcome.FAILED
        assert "The clock of the service is" in partners.message
    prune_at(synced, hours)
    assert ("clock_set_back" in found(synced)) == (hours > 0)
    began = datetime.now(UTC)
    assert_good(sync_at(synced, 0), began)
    assert found(synced) == {"not_reconciled"}
    prune_at(synced, 0)
    assert before <= files(synced)


@pytest.mark.long
def test_most_scan_files_are_deleted_only_if_that_is_forced(synced: Home) -> None:
    for _night in range(4):
        sync_at(synced, 0)
    with opened(synced) as session:
        with session.metadata.transaction() as db:
            *old, _newest = db.query(Scan).filter_by(stream="partners").order_by(Scan.started_at)
            for scan in old:
                scan.started_at -= timedelta(days=500)
            *older, _published = db.query(VersionRow).order_by(VersionRow.number)
            for version in older:
                version.created_at -= timedelta(days=500)
        with pytest.raises(ConfigurationError, match=r"4 of 7 scan files .* Nothing was deleted"):
            prune_files(session, 400)
        pruned = prune_files(session, 400, dry_run=True)
        assert sum(each["kind"] == "scan" for each in pruned) == 4
        assert prune_files(session, 400, force=True) == pruned
